"""The entries of a recording: what one line of a file can say.

Times named `t_s` are of the monotonic clock, which all processes of a machine share.
"""

from dataclasses import dataclass, field

from memfit.backends.observe import DeviceMemory
from memfit.budget import Budget
from memfit.measure.control_group import ControlGroupMemory
from memfit.measure.limits import Limit
from memfit.measure.malloc import AllocatorMemory
from memfit.measure.nvidia import NvidiaMemory
from memfit.measure.pressure import Pressure
from memfit.measure.process import ChildMemory, ProcessMemory, ProportionalMemory

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Header:
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
    t_s: float
    wall_time_s: float
    memfit: str = ""
    python: str = ""
    platform: str = ""
    command: tuple[str, ...] = ()
    limit: Limit | None = None
    settings: dict[str, str] = field(default_factory=dict)
    budget: Budget | None = None


@dataclass(frozen=True, slots=True)
class Software:
    """The framework in use and the versions of what was loaded, once they are known."""

    t_s: float
    backend: str | None
    versions: dict[str, str]
    malloc: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
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


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading of the training process at one moment.

    Attributes:
        t_s: When.
        pid: The process read.
        process: Its memory.
        children: Processes below it; `None` where nobody looked.
        allocator: Its malloc (only from inside).
        devices: Its devices, as the framework counts (only from inside).
        nvidia: All NVIDIA devices, as the driver counts (only from outside).
        control_group: The group it runs in (only from outside).
        available_bytes: What the machine could still give (only from outside).
        pressure: Waiting for memory on the whole machine (only from outside).
        proportional: PSS and USS of the process and all below it, added up (on request).
        children_own_bytes: What the processes below share with nobody (only from outside, now
            and then).
        progress: How far the training is (only from inside).
        probe_s: Time that memfit has spent inside the training so far.
        at: The line of the user's code that ran, such as `"train.py:41"` (only from inside).
        is_importing: Whether that line was waiting for an import.
    """

    t_s: float
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
    progress: Progress | None = None
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


@dataclass(frozen=True, slots=True)
class Mark:
    """A phase begins or ends.

    Attributes:
        t_s: When.
        event: `"begin"` or `"end"`.
        phase: `"fit"`, `"epoch"`, `"validation"`, `"evaluate"`, `"predict"`
            or `"train_on_batch"`.
        number: Which one, from 1.
        calls: With an end: how many calls in a row this phase stands for.
    """

    t_s: float
    event: str
    phase: str
    number: int
    calls: int = 1


@dataclass(frozen=True, slots=True)
class Holding:
    """A container or array that has grown, who holds it, and what puts things there.

    Attributes:
        t_s: When it was seen.
        since_t_s: When it was seen first, with `length_before`.
        owner: The user's own name for it, such as `"outputs of PredictionLogger"`.
        container: `"list"`, `"dict"`, `"lru_cache"`, `"array"`, ...
        length_before: Its length then (for an array: its bytes).
        length: Its length now.
        growth_bytes: Memory that was added to it.
        item_kind: What is in it: `"array"`, `"tensor"`, `"graph"`, `"model"`, `"function"`, ...
        example: Type and shape of one of these.
        file: The file that the owner is written in.
        line: The statement in it that adds to the container, where it was found.
        statement: The source of that statement.
        is_state: Whether the owner is an attribute of a Keras layer or metric.
    """

    t_s: float
    since_t_s: float
    owner: str
    container: str
    length_before: int
    length: int
    growth_bytes: int
    item_kind: str
    example: str = ""
    file: str | None = None
    line: int | None = None
    statement: str | None = None
    is_state: bool = False


@dataclass(frozen=True, slots=True)
class Retraced:
    """A function that was traced or compiled again and again at one line.

    Attributes:
        t_s: When it was seen.
        since_t_s: When it was seen first, with `traces_before`.
        name: Its name; empty for one that the framework made for itself.
        file: Where it is called in the user's code.
        line: The line there.
        traces_before: Traces then, of all functions of this name called at that line.
        traces: Traces now.
        functions: How many different functions these were.
        statement: The source of the call.
        changed: The argument that changed, with two of its values.
        compiler: `"tf.function"`, `"XLA"`, `"jax.jit"` or `"torch.compile"`.
        defined_at: Where the function is written, such as `"train.py:12"`.
    """

    t_s: float
    since_t_s: float
    name: str
    file: str | None
    line: int | None
    traces_before: int
    traces: int
    functions: int
    statement: str | None = None
    changed: str = ""
    compiler: str = ""
    defined_at: str | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """One look into the training process, with its price and what it counted.

    Attributes:
        t_s: When.
        level: `"counts"`, `"names"`, `"census"`, `"trial"` or `"window"`.
        cost_s: Time that it took of the training.
        numbers: How many things of each kind are alive.
        sizes: Bytes that they keep, where that can be told.
    """

    t_s: float
    level: str
    cost_s: float
    numbers: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Made:
    """Things of one kind that were made at one line of the user's code.

    Attributes:
        t_s: When they were counted.
        since_t_s: When they were counted first.
        thing: `"model"`, `"optimizer"`, `"dataset"`, `"figure"`, `"thread"`, ...
        made_before: How many had been made then.
        made: How many have been made by now.
        alive: How many of these are alive.
        file: The user's file.
        line: The line in it.
        statement: Its source.
        by_tuner: Whether KerasTuner had them made: there is no loop in the user's code then.
    """

    t_s: float
    since_t_s: float
    thing: str
    made_before: int
    made: int
    alive: int
    file: str
    line: int
    statement: str | None = None
    by_tuner: bool = False


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer of a data pipeline.

    Attributes:
        t_s: When it was read.
        stage: `"shuffle"`, `"cache"`, `"prefetch"` or `"queue"`.
        held_bytes: What it holds.
        full_bytes: What it will hold when it is full, where that can be told.
        length: Its elements when full; `None` for a cache.
        of_batches: Whether its elements are batches.
        after_repeat: Whether what it reads never ends.
        file: Where the user's code asks for it.
        line: The line there.
        statement: Its source.
    """

    t_s: float
    stage: str
    held_bytes: int
    full_bytes: int | None = None
    length: int | None = None
    of_batches: bool = False
    after_repeat: bool = False
    file: str | None = None
    line: int | None = None
    statement: str | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """Data given whole to the training.

    Attributes:
        t_s: When.
        by: `"fit"` or `"from_tensor_slices"`.
        size_bytes: The data itself.
        copied_bytes: What the framework copies of it.
        file: Where the user's code hands it over.
        line: The line there.
        statement: Its source.
    """

    t_s: float
    by: str
    size_bytes: int
    copied_bytes: int
    file: str | None = None
    line: int | None = None
    statement: str | None = None


@dataclass(frozen=True, slots=True)
class Trial:
    """A remedy that was tried, and what it gave back.

    Attributes:
        t_s: When.
        remedy: `"collect"` (the garbage collector) or `"trim"` (malloc).
        before_bytes: What the process held before.
        after_bytes: And after.
        cost_s: Time that it took.
        objects: Objects that were freed, for the collector.
        examples: Classes of some of these, with how many.
    """

    t_s: float
    remedy: str
    before_bytes: int
    after_bytes: int
    cost_s: float
    objects: int = 0
    examples: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Allocated:
    """What one line left in memory during a window in which allocations were traced.

    Attributes:
        t_s: The end of the window.
        window_s: Its length.
        thing: `"tensor"` (by its own bytes) or `"python"` (as tracemalloc counts).
        growth_bytes: What is left of it at the end of the window.
        count: How many objects or blocks.
        file: The user's file.
        line: The line in it.
        statement: Its source.
    """

    t_s: float
    window_s: float
    thing: str
    growth_bytes: int
    count: int
    file: str
    line: int
    statement: str | None = None


@dataclass(frozen=True, slots=True)
class Called:
    """Calls that bear on memory, at one line of the user's code.

    Attributes:
        t_s: When they were counted.
        function: `"gc.disable"`, `"gc.collect"`, `"clear_session"`, ...
        calls: How many so far.
        file: The user's file.
        line: The line in it.
        statement: Its source.
    """

    t_s: float
    function: str
    calls: int
    file: str
    line: int
    statement: str | None = None


@dataclass(frozen=True, slots=True)
class Hinted:
    """What `memfit lint` says of the script, before it ran.

    Attributes:
        t_s: When.
        code: Code of the rule, such as `"MF201"`.
        cause: The cause that it would have prevented.
        file: The user's file.
        line: The line in it.
        message: One sentence.
        fix: What to do instead; `None` in older recordings.
    """

    t_s: float
    code: str
    cause: str | None
    file: str
    line: int
    message: str
    fix: str | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error inside memfit itself. The training went on."""

    t_s: float
    where: str
    message: str


@dataclass(frozen=True, slots=True)
class End:
    """The last line of a process that ended in good order."""

    t_s: float
    probe_s: float


@dataclass(frozen=True, slots=True)
class Exit:
    """How the script ended, as the supervisor saw it.

    Attributes:
        t_s: When.
        code: Its exit code; `None` if a signal ended it.
        signal: Name of the signal that ended it, such as `"SIGKILL"`.
        peak_rss_bytes: The kernel's own high-water mark of the process.
        group_oom_kills: Kills for memory that its control group counted during the run.
        machine_oom_kills: Kills for memory that the whole machine counted during the run.
    """

    t_s: float
    code: int | None = None
    signal: str | None = None
    peak_rss_bytes: int | None = None
    group_oom_kills: int | None = None
    machine_oom_kills: int | None = None


# What the agent found out about growth, apart from samples and phases.
Evidence = Holding | Retraced | Look | Made | Buffer | Loaded | Trial | Allocated | Called | Hinted
Entry = Header | Software | Sample | Mark | Evidence | Trouble | End | Exit
