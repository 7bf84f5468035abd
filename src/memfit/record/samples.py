"""The lines of a recording about the run itself: its header, readings, phases and end.

Each class is the schema of one kind of line: for writing, reading and checking it. The name of
the kind is the class's name in lower case, unless the class says another.
Times named `t_s` are of the monotonic clock, which all processes of a machine share.
"""

import msgspec

from memfit.backends.devices import DeviceMemory
from memfit.budget import Budget
from memfit.measure.control_group import ControlGroupMemory
from memfit.measure.limits import Limit
from memfit.measure.malloc import AllocatorMemory
from memfit.measure.nvidia import NvidiaMemory
from memfit.measure.pressure import Pressure
from memfit.measure.process import ChildMemory, ProcessMemory, ProportionalMemory

FORMAT = 1


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag=str.lower):
    """What one line says. A field with its default is not written.

    Attributes:
        t_s: When.
    """

    t_s: float


class Header(Entry, frozen=True):
    """First line of every file.

    Attributes:
        format: Version of the format; a reader accepts every version up to its own.
        role: `"supervisor"` (looks from outside) or `"agent"` (inside the training).
        pid: The process that writes this file.
        t_s: The monotonic clock when the file was begun.
        wall_time_s: Seconds since 1970 at the same moment.
        memfit: Version of memfit.
        python: Version of Python.
        platform: Operating system and machine.
        command: What was run, as the user typed it.
        limit: The limit that the training would meet first.
        settings: Environment variables that bear on memory.
        budget: What every `fit` may take; `None` if the user gave no budget.
    """

    format: int
    role: str
    pid: int
    wall_time_s: float
    memfit: str = ""
    python: str = ""
    platform: str = ""
    command: tuple[str, ...] = ()
    limit: Limit | None = None
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    budget: Budget | None = None


class Software(Entry, frozen=True):
    """The framework in use and the versions of what was loaded, once they are known."""

    backend: str | None
    versions: dict[str, str]
    malloc: str | None = None


class StepProgress(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far the training is.

    Attributes:
        fit: Which call of `fit`, from 1.
        epoch: Which epoch of this `fit`, from 1.
        epochs: Number of epochs of this `fit`.
        step: Which step of this epoch, from 1.
        steps: Number of steps of an epoch.
        total_steps: Steps of `fit` and `train_on_batch` since the process began.
        updates: Optimizer updates seen outside compiled code since the process began.
        calls: Calls of compiled functions since the process began.
    """

    fit: int | None = None
    epoch: int | None = None
    epochs: int | None = None
    step: int | None = None
    steps: int | None = None
    total_steps: int = 0
    updates: int = 0
    calls: int = 0

    @property
    def counter(self) -> str:
        """Which of these counts steps: Keras's own, else updates, else compiled calls.

        Tracing counts a few updates too; next to many calls those are not the steps.
        """
        if self.total_steps:
            return "total_steps"
        return "updates" if self.updates * 20 >= self.calls else "calls"


class Sample(Entry, frozen=True):
    """One reading of the training process at one moment.

    Attributes:
        t_s: When.
        pid: The process read.
        process: Its memory.
        children: Processes below it; `None` where they were not read.
        allocator: Its malloc (only from inside).
        devices: Its devices, as the framework counts (only from inside).
        nvidia: All NVIDIA devices, as the driver counts (only from outside).
        control_group: The group it runs in (only from outside).
        available_bytes: What the machine could still give (only from outside).
        pressure: Waiting for memory on the whole machine (only from outside).
        proportional: PSS and USS of the process and all below it, added up (on request).
        children_own_bytes: What the processes below share with no other (only from outside, now
            and then).
        progress: How far the training is (only from inside).
        probe_s: Time that memfit has spent inside the training so far.
        at: The line of the user's code that ran, such as `"train.py:41"` (only from inside).
        is_importing: Whether that line was waiting for an import.
    """

    pid: int
    process: ProcessMemory
    children: tuple[ChildMemory, ...] | None = None
    allocator: AllocatorMemory | None = None
    devices: tuple[DeviceMemory, ...] = ()
    nvidia: tuple[NvidiaMemory, ...] = ()
    control_group: ControlGroupMemory | None = None
    available_bytes: int | None = None
    pressure: Pressure | None = None
    proportional: ProportionalMemory | None = None
    children_own_bytes: int | None = None
    progress: StepProgress | None = None
    probe_s: float | None = None
    at: str | None = None
    is_importing: bool = False

    @property
    def children_rss_bytes(self) -> int:
        """RSS of all processes below, added up."""
        return sum(child.memory.rss_bytes for child in self.children or ())

    @property
    def children_held_bytes(self) -> int:
        """What the kernel cannot reclaim of all processes below, added up."""
        return sum(child.memory.held_bytes for child in self.children or ())


class Mark(Entry, frozen=True):
    """A phase begins or ends.

    Attributes:
        t_s: When.
        event: `"begin"` or `"end"`.
        phase: `"fit"`, `"epoch"`, `"validation"`, `"evaluate"`, `"predict"`
            or `"train_on_batch"`.
        number: Which one, from 1.
        calls: With an end: how many calls in a row this phase stands for.
    """

    event: str
    phase: str
    number: int
    calls: int = 1


class Trouble(Entry, frozen=True):
    """An error inside memfit itself. The training went on."""

    where: str
    message: str


class End(Entry, frozen=True):
    """The last line of a process that ended in good order."""

    probe_s: float


class Exit(Entry, frozen=True):
    """How the script ended, as the supervisor saw it.

    Attributes:
        t_s: When.
        code: Its exit code; `None` if a signal ended it.
        signal: Name of the signal that ended it, such as `"SIGKILL"`.
        peak_rss_bytes: The kernel's own high-water mark of the process.
        group_oom_kills: Kills for memory that its control group counted during the run.
        machine_oom_kills: Kills for memory that the whole machine counted during the run.
    """

    code: int | None = None
    signal: str | None = None
    peak_rss_bytes: int | None = None
    group_oom_kills: int | None = None
    machine_oom_kills: int | None = None
