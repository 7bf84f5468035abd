"""PyTorch: devices through `torch.cuda`."""

import sys
from typing import Any

from memfit.backends.devices import DeviceMemory

FIT_COPIES = 0


BEND = 1.4  # what malloc wastes grows with the tensors


def read_devices() -> tuple[DeviceMemory, ...]:
    """Returns torch's CUDA devices; none before CUDA is up, and none for the CPU."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return ()
    return tuple(_read_device(torch, index) for index in range(torch.cuda.device_count()))


def reset_peaks() -> bool:
    """Sets the peak of each CUDA device to what is in use now."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        for index in range(torch.cuda.device_count()):
            torch.cuda.reset_peak_memory_stats(index)
    return True


def list_devices() -> tuple[str, ...]:
    """Returns the devices that torch sees. Imports it: for a process of its own."""
    import torch

    return ("CPU:0", *(f"GPU:{index}" for index in range(torch.cuda.device_count())))


def _read_device(torch: Any, index: int) -> DeviceMemory:
    return DeviceMemory(
        device=f"GPU:{index}",
        in_use_bytes=torch.cuda.memory_allocated(index),
        peak_bytes=torch.cuda.max_memory_allocated(index),
        limit_bytes=torch.cuda.get_device_properties(index).total_memory,
    )
