"""The memory of devices in use, and how many copies of a batch Keras's `fit` has there.

Inside a training this topic never imports its framework: it is used only once the script has
done so, and nothing it does may initialise a device that the script has not initialised.
"""

from typing import Protocol

import msgspec


class DeviceMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a framework's own allocator says of one device.

    Attributes:
        device: Such as `"GPU:0"` or `"CPU:0"`.
        in_use_bytes: In tensors now.
        peak_bytes: The most that it has been, where known.
        limit_bytes: What the framework may take of the device, where known.
        on_host: Whether this is host memory, which the process's RSS counts too.
    """

    device: str
    in_use_bytes: int
    peak_bytes: int | None = None
    limit_bytes: int | None = None
    on_host: bool = False


class Devices(Protocol):
    """What memfit reads of a framework's devices. Modules of this package have this shape.

    Attributes:
        FIT_COPIES: How many copies of whole arrays Keras's `fit` has at once for this framework.
        BEND: How many times steeper than from size to size before the memory of a step may rise.
    """

    FIT_COPIES: int
    BEND: float

    def read_devices(self) -> tuple[DeviceMemory, ...]:
        """Returns the devices in use; none before the script has used one."""

    def reset_peaks(self) -> bool:
        """Begins the peaks of all accelerators in use anew; returns whether it can."""

    def list_devices(self) -> tuple[str, ...]:
        """Returns all devices that it sees. Imports it: only for a process of its own."""
