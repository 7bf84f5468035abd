"""JAX: devices through `memory_stats`."""

import sys
from typing import Any

from memfit.backends.devices import DeviceMemory

FIT_COPIES = 0


BEND = 1.5  # small micro-batches take less than what compiling them takes


def read_devices() -> tuple[DeviceMemory, ...]:
    """Returns JAX's devices that keep count; none before a backend is up.

    Asking earlier would initialise the device and, on a GPU, take most of its memory.
    """
    jax = sys.modules.get("jax")
    if jax is None or not is_initialized():
        return ()
    readings = (_read_device(device) for device in jax.local_devices())
    return tuple(reading for reading in readings if reading is not None)


def reset_peaks() -> bool:
    """Returns `False`: JAX tells the highest peak since the process began."""
    return False


def list_devices() -> tuple[str, ...]:
    """Returns the devices that JAX sees. Imports and initialises it: for a process of its own."""
    import jax

    return tuple(f"{device.platform.upper()}:{device.id}" for device in jax.devices())


def is_initialized() -> bool:
    """Whether JAX has started its devices."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    ask = getattr(bridge, "backends_are_initialized", None)
    return bool(ask()) if ask is not None else False


def _read_device(device: Any) -> DeviceMemory | None:
    stats = device.memory_stats()  # None on the CPU
    if not stats or "bytes_in_use" not in stats:
        return None
    peak_bytes = stats.get("peak_bytes_in_use", -1)
    return DeviceMemory(
        device=f"{device.platform.upper()}:{device.id}",
        in_use_bytes=int(stats["bytes_in_use"]),
        peak_bytes=peak_bytes if peak_bytes >= 0 else None,  # -1 where it is not known
        limit_bytes=stats.get("bytes_limit"),
    )
