"""The lines of a recording about growth: what the agent found out inside the training."""

import msgspec

from memfit.record.samples import Entry


class Evidence(Entry, frozen=True):
    """What was found out about growth, apart from samples and phases."""


class Holding(Evidence, frozen=True):
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


class Retraced(Evidence, frozen=True):
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


class Look(Evidence, frozen=True):
    """One look into the training process, with its price and what it counted.

    Attributes:
        t_s: When.
        level: `"counts"`, `"names"`, `"census"`, `"trial"` or `"window"`.
        cost_s: Time that it took of the training.
        numbers: How many things of each kind are alive.
        sizes: Bytes that they keep, where known.
    """

    level: str
    cost_s: float
    numbers: dict[str, int] = msgspec.field(default_factory=dict)
    sizes: dict[str, int] = msgspec.field(default_factory=dict)


class Made(Evidence, frozen=True):
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

    since_t_s: float
    thing: str
    made_before: int
    made: int
    alive: int
    file: str
    line: int
    statement: str | None = None
    by_tuner: bool = False


class Buffer(Evidence, frozen=True):
    """A buffer of a data pipeline.

    Attributes:
        t_s: When it was read.
        stage: `"shuffle"`, `"cache"`, `"prefetch"` or `"queue"`.
        held_bytes: What it holds.
        full_bytes: What it will hold when it is full, where known.
        length: Its elements when full; `None` for a cache.
        of_batches: Whether its elements are batches.
        after_repeat: Whether what it reads never ends.
        file: Where the user's code asks for it.
        line: The line there.
        statement: Its source.
    """

    stage: str
    held_bytes: int
    full_bytes: int | None = None
    length: int | None = None
    of_batches: bool = False
    after_repeat: bool = False
    file: str | None = None
    line: int | None = None
    statement: str | None = None


class Loaded(Evidence, frozen=True):
    """Data passed to the training as arrays in memory.

    Attributes:
        t_s: When.
        by: `"fit"` or `"from_tensor_slices"`.
        size_bytes: The data itself.
        copied_bytes: What the framework copies of it.
        file: Where the user's code hands it over.
        line: The line there.
        statement: Its source.
    """

    by: str
    size_bytes: int
    copied_bytes: int
    file: str | None = None
    line: int | None = None
    statement: str | None = None


class RemedyTrial(Evidence, frozen=True, tag="trial"):
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

    remedy: str
    before_bytes: int
    after_bytes: int
    cost_s: float
    objects: int = 0
    examples: dict[str, int] = msgspec.field(default_factory=dict)


class Allocated(Evidence, frozen=True):
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

    window_s: float
    thing: str
    growth_bytes: int
    count: int
    file: str
    line: int
    statement: str | None = None


class Called(Evidence, frozen=True):
    """Calls that bear on memory, at one line of the user's code.

    Attributes:
        t_s: When they were counted.
        function: `"gc.disable"`, `"gc.collect"`, `"clear_session"`, ...
        calls: How many so far.
        file: The user's file.
        line: The line in it.
        statement: Its source.
    """

    function: str
    calls: int
    file: str
    line: int
    statement: str | None = None


class Hinted(Evidence, frozen=True):
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

    code: str
    cause: str | None
    file: str
    line: int
    message: str
    fix: str | None = None


class Uncontrolled(Evidence, frozen=True):
    """A `fit` that ran as without a budget, although one was given.

    Attributes:
        t_s: When it was found out.
        why: A sentence.
    """

    why: str
