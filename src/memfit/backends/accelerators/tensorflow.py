"""TensorFlow's accelerators, through `tf.config`. Not yet run on hardware."""

from collections.abc import Sequence
from typing import Any

from memfit.backends.accelerators import (
    AcceleratorSettings,
    Applied,
    refuse_undo,
    refuse_unknown_size,
)
from memfit.backends.devices.tensorflow import is_initialized
from memfit.errors import UsageError
from memfit.units import format_size

TITLE = "TensorFlow"


def find() -> tuple[str, ...]:
    """Returns the GPUs that TensorFlow will use. Lists them without starting its runtime."""
    return tuple(device.name.removeprefix("/physical_device:") for device in _devices())


def is_too_late(settings: AcceleratorSettings) -> bool:
    """Whether the runtime is up: then nothing of a device can be changed."""
    return is_initialized()


def apply(settings: AcceleratorSettings, sizes_bytes: Sequence[int]) -> Applied:
    """Sets memory growth, or one logical device a GPU with a limit, which it takes at the start."""
    if settings.limit_bytes is None and settings.fraction is None:
        return _set_growth(bool(settings.on_demand))
    if settings.on_demand:
        raise UsageError(
            "TensorFlow cannot limit a device and take its memory on demand at once. "
            'Received: a limit and on_demand. Give one: on_demand=True or limit="6GB".'
        )
    limit_bytes = settings.limit_bytes
    if limit_bytes is None:
        if not sizes_bytes:
            raise refuse_unknown_size(TITLE, "a part of the device", 'limit="6GB"')
        limit_bytes = int((settings.fraction or 1.0) * min(sizes_bytes))
    return _set_limit(limit_bytes)


def _set_growth(on_demand: bool) -> Applied:
    import tensorflow as tf

    config = tf.config.experimental
    if any(tf.config.get_logical_device_configuration(device) for device in _devices()):
        raise UsageError(
            "A limit is already set for TensorFlow's devices, and on_demand cannot be combined "
            "with it. Restart the process and set only one of them."
        )
    before = [(device, config.get_memory_growth(device)) for device in _devices()]
    for device in _devices():
        config.set_memory_growth(device, on_demand)

    def undo() -> None:
        if is_initialized():
            raise refuse_undo(TITLE, "its devices are in use")
        for device, value in before:
            config.set_memory_growth(device, value)

    how = "as it is needed" if on_demand else "nearly all at the start"
    return Applied(f"TensorFlow takes memory of {', '.join(find())} {how}", undo)


def _set_limit(limit_bytes: int) -> Applied:
    import tensorflow as tf

    before = [(one, tf.config.get_logical_device_configuration(one)) for one in _devices()]
    limited = tf.config.LogicalDeviceConfiguration(memory_limit=max(limit_bytes // 2**20, 1))
    for device in _devices():
        tf.config.set_logical_device_configuration(device, [limited])

    def undo() -> None:
        if is_initialized():
            raise refuse_undo(TITLE, "its devices are in use")
        if any(value is None for _, value in before):
            raise refuse_undo(TITLE, "TensorFlow has no call that takes a limit away")
        for device, value in before:
            tf.config.set_logical_device_configuration(device, value)

    size = format_size(limit_bytes)
    return Applied(f"TensorFlow takes {size} of {', '.join(find())} at the start, no more", undo)


def _devices() -> list[Any]:
    import tensorflow as tf

    return list(tf.config.get_visible_devices("GPU"))
