"""What this machine offers for training: memory, swap, devices, packages, settings."""

import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from memfit.backends import BACKEND_NAMES
from memfit.measure.control_group import find_control_group
from memfit.measure.environment import read_settings
from memfit.measure.limits import Limit, find_limits
from memfit.measure.malloc import malloc_name
from memfit.measure.nvidia import NvidiaMemory, open_nvidia
from memfit.measure.pressure import Pressure, read_pressure

_PACKAGES = ("memfit", "keras", *BACKEND_NAMES, "numpy")
# A first import of TensorFlow from a cold disk takes long.
_ASK_TIMEOUT_S = 120.0
_ASK = (
    "import json, sys; from memfit.backends import load; "
    "print(json.dumps(load('devices', sys.argv[1]).list_devices()))"
)


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine, as a process of this user sees it.

    Attributes:
        platform: Operating system and machine.
        python: Version of Python.
        limits: Every limit of a process started here, the smallest first.
        available_bytes: What could be given without swapping.
        swap_bytes: Swap that there is.
        shared_memory_bytes: Size of `/dev/shm`, through which workers pass batches.
        overcommit: The kernel's policy: `0` by guess, `1` always, `2` never.
        kills_whole_group: Whether a kill for memory ends the whole control group.
        malloc: Which malloc Python uses.
        pressure: Waiting for memory now.
        versions: Installed packages.
        devices: What each installed backend sees; `None` if it failed to answer.
        nvidia: NVIDIA devices as the driver sees them.
        settings: Environment variables that bear on memory.
    """

    platform: str
    python: str
    limits: tuple[Limit, ...]
    available_bytes: int
    swap_bytes: int
    shared_memory_bytes: int | None = None
    overcommit: int | None = None
    kills_whole_group: bool = False
    malloc: str | None = None
    pressure: Pressure | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    devices: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    nvidia: tuple[NvidiaMemory, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


def read_machine() -> Machine:
    """Returns what there is. Asks every installed backend, which takes some seconds."""
    nvidia = open_nvidia()
    return Machine(
        platform=platform.platform(),
        python=platform.python_version(),
        limits=find_limits(os.getpid()),
        available_bytes=psutil.virtual_memory().available,
        swap_bytes=psutil.swap_memory().total,
        shared_memory_bytes=_shared_memory_bytes(),
        overcommit=_read_number(Path("/proc/sys/vm/overcommit_memory")),
        kills_whole_group=_kills_whole_group(),
        malloc=malloc_name(),
        pressure=read_pressure(),
        versions=_installed(),
        devices=_ask_backends(),
        nvidia=nvidia.read() if nvidia else (),
        settings=read_settings(),
    )


def _installed() -> dict[str, str]:
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def _ask_backends() -> dict[str, tuple[str, ...] | None]:
    """Asks each in a process of its own, all at once: none may be loaded into this one."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    asked = {
        name: subprocess.Popen(
            [sys.executable, "-c", _ASK, name],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        for name in BACKEND_NAMES
        if importlib.util.find_spec(name) is not None
    }
    return {name: _hear(process) for name, process in asked.items()}


def _hear(process: subprocess.Popen[bytes]) -> tuple[str, ...] | None:
    try:
        answer, _ = process.communicate(timeout=_ASK_TIMEOUT_S)
        return tuple(json.loads(answer))
    except (subprocess.TimeoutExpired, ValueError):
        process.kill()
        process.wait()
        return None


def _shared_memory_bytes() -> int | None:
    try:
        return psutil.disk_usage("/dev/shm").total  # noqa: S108  # its size, not a file in it
    except OSError:
        return None


def _kills_whole_group() -> bool:
    group = find_control_group(os.getpid())
    return group is not None and _read_number(group.path / "memory.oom.group") == 1


def _read_number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
