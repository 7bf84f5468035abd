"""What a machine's settings mean for training, and what to do about each."""

from collections.abc import Iterator
from dataclasses import dataclass

from memfit.backends import BACKEND_NAMES
from memfit.measure.machine import Machine
from memfit.units import format_size

_LITTLE_SHARE = 0.1
_SMALL_SHARED_MEMORY_BYTES = 10**9
_NEVER_OVERCOMMITS = 2
_WAITING_PERCENT = 10.0


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing about a machine that bears on training.

    Attributes:
        code: Short name.
        is_risk: Whether a training may fail for it; otherwise it is good to know.
        message: What is so, with figures.
        action: What to do about it.
    """

    code: str
    is_risk: bool
    message: str
    action: str


def advise(machine: Machine) -> tuple[Advice, ...]:
    """Returns what a user should know of `machine`, risks first."""
    advice = [*_on_memory(machine), *_on_settings(machine), *_on_devices(machine)]
    return tuple(sorted(advice, key=lambda one: not one.is_risk))


def _on_memory(machine: Machine) -> Iterator[Advice]:
    limit = machine.limits[0]
    if limit.source.startswith("cgroup"):
        yield Advice(
            "container-limit",
            False,
            f"A control group allows {format_size(limit.limit_bytes)}; above it the kernel kills.",
            "Raise it in the container's or the scheduler's settings if training needs more.",
        )
    if limit.source.startswith("rlimit"):
        yield Advice(
            "resource-limit",
            True,
            f"A resource limit ({limit.source}) allows {format_size(limit.limit_bytes)}. It counts "
            "reserved addresses too, and frameworks reserve many times what they use.",
            "Lift it with: ulimit -v unlimited; ulimit -d unlimited",
        )
    if machine.available_bytes < _LITTLE_SHARE * limit.limit_bytes:
        yield Advice(
            "little-available",
            True,
            f"Only {format_size(machine.available_bytes)} is free; other processes use the rest.",
            "See which: ps aux --sort=-rss | head",
        )
    if machine.pressure is not None and machine.pressure.some_percent >= _WAITING_PERCENT:
        yield Advice(
            "pressure",
            True,
            f"Processes wait for memory {machine.pressure.some_percent:.0f}% of the time.",
            "Stop what you do not need before training; otherwise it will be slow, then killed.",
        )
    if machine.swap_bytes == 0:
        yield Advice(
            "no-swap",
            False,
            "There is no swap: a process above the limit is killed at once.",
            "Leave some memory free below the limit, or add swap.",
        )
    if machine.kills_whole_group:
        yield Advice(
            "group-kill",
            True,
            "An out-of-memory kill ends the whole control group, memfit's supervisor included.",
            "The recording survives; after a restart: memfit diagnose",
        )


def _on_settings(machine: Machine) -> Iterator[Advice]:
    settings = machine.settings
    shared_bytes = machine.shared_memory_bytes
    if shared_bytes is not None and shared_bytes < _SMALL_SHARED_MEMORY_BYTES:
        yield Advice(
            "small-shared-memory",
            True,
            f"Shared memory has {format_size(shared_bytes)}; data workers pass batches through it.",
            "Give the container more, for example: docker run --shm-size=2g",
        )
    if machine.overcommit == _NEVER_OVERCOMMITS:
        yield Advice(
            "no-overcommit",
            True,
            "The kernel does not overcommit memory (overcommit_memory=2).",
            "Frameworks reserve far more than they use. Allow it: sysctl vm.overcommit_memory=0",
        )
    if "MALLOC_ARENA_MAX" in settings:
        yield Advice(
            "malloc-arenas",
            False,
            f"MALLOC_ARENA_MAX={settings['MALLOC_ARENA_MAX']} helps where threads fragment memory, "
            "but in an ordinary fit memory then takes longer to settle.",
            "Compare a run with it and a run without it before you keep it.",
        )
    backend = settings.get("KERAS_BACKEND")
    if backend in BACKEND_NAMES and backend not in machine.devices:
        yield Advice(
            "backend-missing",
            True,
            f"KERAS_BACKEND={backend}, which is not installed here.",
            f"Install it, or choose another: {', '.join(machine.devices) or 'none is installed'}",
        )
    for name, devices in machine.devices.items():
        if devices is None:
            yield Advice(
                "backend-broken",
                True,
                f"{name} is installed but does not start.",
                f'See why: python -c "import {name}"',
            )


def _on_devices(machine: Machine) -> Iterator[Advice]:
    settings = machine.settings
    with_accelerator = {
        name
        for name, devices in machine.devices.items()
        if any(not device.startswith("CPU") for device in devices or ())
    }
    if machine.nvidia and not with_accelerator:
        yield Advice(
            "device-unseen",
            True,
            f"The driver has {machine.nvidia[0].name}, but no installed backend sees it.",
            "Install the CUDA build of your backend.",
        )
    if "tensorflow" in with_accelerator and "TF_FORCE_GPU_ALLOW_GROWTH" not in settings:
        yield Advice(
            "tensorflow-takes-all",
            False,
            "TensorFlow takes nearly all memory of a GPU when it starts.",
            "To allocate on demand: export TF_FORCE_GPU_ALLOW_GROWTH=true",
        )
    if "jax" in with_accelerator and "XLA_PYTHON_CLIENT_PREALLOCATE" not in settings:
        yield Advice(
            "jax-takes-most",
            False,
            "JAX takes 75% of a GPU's memory when it starts.",
            "To allocate on demand: export XLA_PYTHON_CLIENT_PREALLOCATE=false",
        )
