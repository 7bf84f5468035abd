"""TensorFlow: devices through `get_memory_info`."""

import sys
from typing import Any

from memfit.backends.devices import DeviceMemory

FIT_COPIES = 2


BEND = 1.1  # its pool takes more for tensors of a new size


def read_devices() -> tuple[DeviceMemory, ...]:
    """Returns TensorFlow's devices; none before its runtime is up.

    Asking earlier would start the runtime, and then the script's own
    `set_memory_growth` would fail.
    """
    tf = sys.modules.get("tensorflow")
    if tf is None or not is_initialized():
        return ()
    readings = (_read_device(tf, device.name) for device in tf.config.list_logical_devices())
    return tuple(reading for reading in readings if reading is not None)


def reset_peaks() -> bool:
    """Sets the peak of each accelerator to what is in use now."""
    for one in read_devices():
        if not one.on_host:
            sys.modules["tensorflow"].config.experimental.reset_memory_stats(one.device)
    return True


def list_devices() -> tuple[str, ...]:
    """Returns the devices that TensorFlow sees. Imports it: for a process of its own."""
    import tensorflow as tf

    return tuple(
        device.name.removeprefix("/physical_device:")
        for device in tf.config.list_physical_devices()
    )


def is_initialized() -> bool:
    """Whether TensorFlow has started its runtime, and its devices with it."""
    context_module = sys.modules.get("tensorflow.python.eager.context")
    context = context_module.context_safe() if context_module is not None else None
    return bool(getattr(context, "_initialized", False))


def _read_device(tf: Any, name: str) -> DeviceMemory | None:
    device = name.removeprefix("/device:")
    try:
        info = tf.config.experimental.get_memory_info(device)
    except (ValueError, tf.errors.OpError):
        return None  # a CPU without oneDNN's allocator keeps no count
    return DeviceMemory(
        device=device,
        in_use_bytes=int(info["current"]),
        peak_bytes=int(info["peak"]),
        on_host=device.startswith("CPU"),
    )
