"""Device memory as the NVIDIA driver counts it, for every process (needs nvidia-ml-py).

Written against the documented NVML API; not yet run on hardware.
"""

from collections.abc import Collection
from typing import Any

import msgspec


class NvidiaMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """One NVIDIA device.

    Attributes:
        name: Such as `"NVIDIA A100-SXM4-40GB"`.
        used_bytes: In use by everybody.
        total_bytes: What the device has.
        ours_bytes: In use by the processes asked about; `None` where the driver hides it.
    """

    name: str
    used_bytes: int
    total_bytes: int
    ours_bytes: int | None = None


class NvidiaReader:
    """Reads all NVIDIA devices of this machine.

    Args:
        nvml: The module `pynvml`, already initialised.
    """

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._handles = [
            nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())
        ]

    def read(self, pids: Collection[int] = ()) -> tuple[NvidiaMemory, ...]:
        """Returns a reading of each device; `pids` are the processes that count as ours."""
        readings = (self._read_one(handle, pids) for handle in self._handles)
        return tuple(reading for reading in readings if reading is not None)

    def _read_one(self, handle: Any, pids: Collection[int]) -> NvidiaMemory | None:
        try:
            memory = self._nvml.nvmlDeviceGetMemoryInfo(handle)
        except self._nvml.NVMLError:  # a device that shares the host's memory keeps no count
            return None
        name = self._nvml.nvmlDeviceGetName(handle)
        return NvidiaMemory(
            name=name.decode() if isinstance(name, bytes) else name,
            used_bytes=memory.used,
            total_bytes=memory.total,
            ours_bytes=self._ours(handle, pids),
        )

    def _ours(self, handle: Any, pids: Collection[int]) -> int | None:
        try:
            running = self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        except self._nvml.NVMLError:
            return None
        ours = [process.usedGpuMemory for process in running if process.pid in pids]
        return None if None in ours else sum(ours)


def open_nvidia() -> NvidiaReader | None:
    """Returns a reader, or `None` without a driver, a device or nvidia-ml-py."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        return NvidiaReader(pynvml)
    except pynvml.NVMLError:
        return None
