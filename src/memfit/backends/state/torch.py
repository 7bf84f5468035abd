"""torch: tensors that change in place, modules that hold them, and generators."""

from typing import Any

import numpy as np
import torch


def is_module(value: Any) -> bool:
    """Returns whether it is a `torch.nn.Module`."""
    return isinstance(value, torch.nn.Module)


def unwrap(value: Any) -> Any:
    """Nothing is wrapped."""
    return value


def find_variable(value: Any) -> Any | None:
    """Returns a tensor that a step may write to, or a generator."""
    if isinstance(value, torch.Generator):
        return value
    if isinstance(value, torch.Tensor) and value.is_leaf and value.layout == torch.strided:
        return value
    return None


def read(variable: Any) -> Any:
    """Returns the bytes of a tensor or of the state of a generator."""
    if isinstance(variable, torch.Generator):
        return variable.get_state().numpy()
    return variable.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()


def write(variable: Any, array: Any) -> None:
    """Writes these bytes."""
    flat = torch.from_numpy(np.array(array))
    if isinstance(variable, torch.Generator):
        variable.set_state(flat)
        return
    with torch.no_grad():
        variable.copy_(flat.view(variable.dtype).reshape(variable.shape))


def get_random_state() -> Any:
    """Returns the states of the CPU and of each GPU."""
    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    return torch.get_rng_state(), gpus


def set_random_state(state: Any) -> None:
    """Puts them back."""
    torch.set_rng_state(state[0])
    if state[1]:
        torch.cuda.set_rng_state_all(state[1])
