"""PyTorch: devices through `torch.cuda`, steps through its optimizers' hook."""

import sys
from collections.abc import Callable
from typing import Any

from memfit.backends import CompiledFunction, DeviceMemory, LiveObject


def read_devices() -> tuple[DeviceMemory, ...]:
    """Returns torch's CUDA devices; none before CUDA is up, and none for the CPU."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return ()
    return tuple(_read_device(torch, index) for index in range(torch.cuda.device_count()))


def list_devices() -> tuple[str, ...]:
    """Returns the devices that torch sees. Imports it: for a process of its own."""
    import torch

    return ("CPU:0", *(f"GPU:{index}" for index in range(torch.cuda.device_count())))


def describe(value: Any) -> LiveObject | None:
    """Returns what an object of torch is; a tensor that keeps its graph is a `"graph"`."""
    torch: Any = sys.modules["torch"]
    if not isinstance(value, torch.Tensor):
        return None
    kind = "graph" if value.grad_fn is not None else "tensor"
    if value.device.type != "cpu" or value.layout != torch.strided:
        return LiveObject(kind, 0, id(value), f"{value.dtype} on {value.device}")
    storage = value.untyped_storage()
    text = f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    return LiveObject(kind, storage.nbytes(), storage.data_ptr(), text)


def count_calls(on_call: Callable[[], None]) -> None:
    """Counts steps of every `torch.optim` optimizer; Keras's own are counted by the agent."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    register_optimizer_step_post_hook(lambda *_args: on_call())


def compiled_functions() -> list[CompiledFunction]:
    """Returns nothing yet: torch keeps its compiled versions in C++, by code object."""
    return []


def _read_device(torch: Any, index: int) -> DeviceMemory:
    return DeviceMemory(
        device=f"GPU:{index}",
        in_use_bytes=torch.cuda.memory_allocated(index),
        peak_bytes=torch.cuda.max_memory_allocated(index),
        limit_bytes=torch.cuda.get_device_properties(index).total_memory,
    )
