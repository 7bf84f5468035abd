"""What a framework does: devices in use, objects, steps and compilations, registries.

Inside a training this topic never imports its framework: it is used only once the script has
done so, and nothing it does may initialise a device that the script has not initialised.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

# The packages whose objects each framework's module describes.
PACKAGES = {"tensorflow": "tensorflow", "jax": "jax", "jaxlib": "jax", "torch": "torch"}
# Classes of tensors that hold values, in any framework.
TENSOR_CLASSES = frozenset({"EagerTensor", "ArrayImpl", "Tensor"})
# What TensorFlow keeps for good of each Python number that `watch_scalars` reports.
SCALAR_BYTES = 700
# A part of an array that keeps this many times its own size alive is called a view.
VIEW_FACTOR = 4


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


@dataclass(frozen=True, slots=True)
class LiveObject:
    """What one object is to a user who looks for memory.

    Attributes:
        kind: Such as `"tensor"`, `"graph"` (with the record of how it was computed),
            `"function"`, `"dataset"`, `"model"`.
        size_bytes: Memory that it keeps; a view counts the whole buffer behind it.
        buffer_id: The same for objects that share one buffer.
        text: Type and shape, such as `"float32 (128, 10)"`.
    """

    kind: str
    size_bytes: int
    buffer_id: int
    text: str = ""


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
        full_bytes: What it will hold when full, where that can be told.
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


@dataclass(frozen=True, slots=True)
class Counted:
    """How many things of each kind there are, and their bytes where these can be told."""

    numbers: Mapping[str, int] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


class Observer(Protocol):
    """Is told what happens in a framework, in the thread and below the line that causes it."""

    def stepped(self) -> None:
        """A compiled function or an optimizer step is called."""

    def made(self, kind: str, thing: object) -> None:
        """The script made `thing`."""

    def compiled(self, compilation: Compilation) -> None:
        """A function is traced or compiled."""

    def loaded(self, by: str, size_bytes: int, copied_bytes: int) -> None:
        """The script hands over data whole."""


class Observe(Protocol):
    """What memfit needs to observe a framework. Modules of this package have this shape.

    Attributes:
        FIT_COPIES: How many copies of whole arrays Keras's `fit` has at once for this framework.
        BATCH_COPIES: How many times its own size a batch of arrays takes in `fit`, at least.
        BEND: How many times steeper than from size to size before the memory of a step may rise.
        COPIES_SHUFFLED: Whether a shuffled batch takes a copy that one in order does not.
    """

    FIT_COPIES: int
    BATCH_COPIES: float
    BEND: float
    COPIES_SHUFFLED: bool

    def read_devices(self) -> tuple[DeviceMemory, ...]:
        """Returns the devices in use; none before the script has used one."""

    def reset_peaks(self) -> bool:
        """Begins the peaks of all accelerators in use anew; returns whether it can."""

    def list_devices(self) -> tuple[str, ...]:
        """Returns all devices that it sees. Imports it: only for a process of its own."""

    def describe(self, value: Any) -> LiveObject | None:
        """Returns what `value`, an object of this framework, is; `None` if nothing known."""

    def graph_length(self, value: Any) -> int:
        """Returns how many steps the record behind a tensor has; 0 where tensors keep none."""

    def graph_size_bytes(self, values: Sequence[Any]) -> int:
        """Returns the bytes that these records keep together, apart from parameters."""

    def watch(self, observer: Observer) -> None:
        """Tells `observer` from now on. Called once, after the framework was loaded."""

    def is_tracing(self) -> bool:
        """Returns whether a function is being traced in this thread."""

    def is_compiler_loaded(self) -> bool:
        """Returns whether Keras can clear its session without loading a compiler first."""

    def count(self) -> Counted:
        """Returns what the framework keeps in its own registries."""

    def registered(self) -> frozenset[str]:
        """Returns the names of what the framework keeps for models, also when they are gone."""

    def release(self, names: frozenset[str]) -> None:
        """Lets go of `names` of these, and of what was compiled; the models must be gone."""

    def after_compiling(self, act: Callable[[], object]) -> Callable[[], None]:
        """Has `act` called after each compilation and before its first run, until the result is."""

    def watch_scalars(self, tell: Callable[[float], None]) -> Callable[[], None]:
        """Has `tell` called with each Python number that becomes a tensor, until the result is.

        Costs time at every operation: for a short window only.
        """

    def read_stages(self) -> list[DataStage]:
        """Returns the stages of running data pipelines that keep elements."""


def backend_of(kind: type) -> str | None:
    """Returns the framework that objects of `kind` belong to; `None` if it is not loaded."""
    package = package_of(kind)
    # memfit's wrapper around a function that JAX compiled is an object of JAX.
    name = "jax" if package == "memfit" else PACKAGES.get(package)
    return name if name in sys.modules else None


def package_of(kind: type) -> str:
    """Returns the package that a class comes from; empty where a class names no module."""
    module = kind.__module__
    return module.partition(".")[0] if isinstance(module, str) else ""


def kind_by_class(kinds: Mapping[str, str], value: object) -> str | None:
    """Returns the kind of `value` by the names of its classes, the nearest first."""
    return next(
        (kinds[base.__name__] for base in type(value).__mro__ if base.__name__ in kinds), None
    )
