"""Steps, compilations and data pipelines as they happen.

Inside a training this topic never imports its framework: it is used only once the script has
done so, and nothing it does may initialise a device that the script has not initialised.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

# What TensorFlow keeps for good of each Python number that `watch_scalars` reports.
SCALAR_BYTES = 700


@dataclass(frozen=True, slots=True)
class Compilation:
    """One trace or compilation of a function.

    Attributes:
        compiler: `"tf.function"`, `"XLA"`, `"jax.jit"` or `"torch.compile"`.
        name: Name of the function.
        file: Where it is written.
        line: The line there.
        function_id: The same for compilations of one function.
        arguments: What it was compiled for, argument by argument.
    """

    compiler: str
    name: str
    file: str | None = None
    line: int | None = None
    function_id: int = 0
    arguments: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DataStage:
    """A stage of a data pipeline that keeps elements.

    Attributes:
        kind: `"shuffle"`, `"cache"`, `"prefetch"` or `"queue"`.
        maker: The object that the user's code made for it; its line is looked up by this.
        held_bytes: What it holds.
        full_bytes: What it will hold when full, where known.
        length: Its elements when full; `None` for a cache.
        of_batches: Whether its elements are batches.
        after_repeat: Whether what it reads never ends.
    """

    kind: str
    maker: object
    held_bytes: int
    full_bytes: int | None = None
    length: int | None = None
    of_batches: bool = False
    after_repeat: bool = False


class Observer(Protocol):
    """Is called for events of a framework, in the thread and below the line that causes them."""

    def stepped(self) -> None:
        """A compiled function or an optimizer step is called."""

    def made(self, kind: str, thing: object) -> None:
        """The script made `thing`."""

    def compiled(self, compilation: Compilation) -> None:
        """A function is traced or compiled."""

    def loaded(self, by: str, size_bytes: int, copied_bytes: int) -> None:
        """The script passes all its data at once."""


class Events(Protocol):
    """What memfit watches in a framework. Modules of this package have this shape."""

    def watch(self, observer: Observer) -> None:
        """Tells `observer` from now on. Called once, after the framework was loaded."""

    def after_compiling(self, act: Callable[[], object]) -> Callable[[], None]:
        """Has `act` called after each compilation and before its first run, until the result is."""

    def watch_scalars(self, tell: Callable[[float], None]) -> Callable[[], None]:
        """Has `tell` called with each Python number that becomes a tensor, until the result is.

        Costs time at every operation: for a short window only.
        """

    def is_tracing(self) -> bool:
        """Returns whether a function is being traced in this thread."""

    def read_stages(self) -> list[DataStage]:
        """Returns the stages of running data pipelines that keep elements."""
