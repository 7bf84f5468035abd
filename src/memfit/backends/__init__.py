"""The only code that knows TensorFlow, JAX or torch: one adapter each, chosen here.

Inside a training an adapter never imports its framework: it is used only once the script has
done so, and nothing it does may initialise a device that the script has not initialised.
"""

import functools
import importlib
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

from memfit.failsafe import harmless

_MOST_ARGUMENTS = 64
_DEEPEST_ARGUMENT = 4
# A part of an array that keeps this many times its own size alive is called a view.
VIEW_FACTOR = 4
BACKEND_NAMES = ("tensorflow", "jax", "torch")


@dataclass(frozen=True, slots=True)
class DeviceMemory:
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


class Backend(Protocol):
    """What memfit needs of a framework. Modules of this package have this shape.

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


def loaded_backends() -> list[Backend]:
    """Returns the adapters of the frameworks that the script has loaded."""
    return [get_backend(name) for name in BACKEND_NAMES if name in sys.modules]


def get_backend(name: str) -> Backend:
    """Returns the adapter of the framework `name`; loads the adapter, not the framework."""
    return cast("Backend", importlib.import_module(f"memfit.backends.observe.{name}"))


def written_at(function: Any) -> tuple[str, str | None, int | None]:
    """Returns name, file and line of a Python function, through whatever wraps it."""
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", type(function).__name__)
    return name, getattr(code, "co_filename", None), getattr(code, "co_firstlineno", None)


def describe_arguments(
    function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, str]:
    """Returns each argument in words: type and shape of arrays, the value of anything else."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    method = getattr(code, "co_name", "")
    if names[:1] == ("self",) and not (args and hasattr(type(args[0]), method)):
        names = names[1:]  # a method that is bound already
    given = [
        (names[at] if at < len(names) else f"argument {at + 1}", one) for at, one in enumerate(args)
    ]
    described: dict[str, str] = {}
    for name, value in [*given, *kwargs.items()]:
        _describe_argument(name, value, described, 0)
    return described


def _describe_argument(name: str, value: Any, into: dict[str, str], depth: int) -> None:
    if len(into) >= _MOST_ARGUMENTS:
        return
    kind = type(value)
    if issubclass(kind, Mapping) and depth < _DEEPEST_ARGUMENT:
        for key, inner in list(value.items()):
            _describe_argument(f"{name}[{key!r}]", inner, into, depth + 1)
    elif issubclass(kind, list | tuple) and depth < _DEEPEST_ARGUMENT:
        for at, inner in enumerate(value):
            _describe_argument(f"{name}[{at}]", inner, into, depth + 1)
    elif hasattr(kind, "shape") and hasattr(kind, "dtype"):
        dtype = getattr(value.dtype, "name", None) or str(value.dtype).removeprefix("torch.")
        into[name] = f"{dtype} {tuple(value.shape)}"
    elif callable(value):
        into[name] = f"{getattr(value, '__name__', kind.__name__)} (object {id(value):#x})"
    elif issubclass(kind, int | float | str | bool | type(None)):
        into[name] = f"{value!r:.60} (Python {kind.__name__})"
    else:
        into[name] = f"{kind.__name__} (object {id(value):#x})"


def tell_after(owner: Any, method: str, tell: Callable[[Any], None]) -> None:
    """Has `tell` called with the object after each call of `method` on it."""
    original = vars(owner)[method]
    tell_safely = harmless(tell)

    @functools.wraps(original)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        tell_safely(self)
        return result

    setattr(owner, method, call)


def kind_by_class(kinds: Mapping[str, str], value: object) -> str | None:
    """Returns the kind of `value` by the names of its classes, the nearest first."""
    return next(
        (kinds[base.__name__] for base in type(value).__mro__ if base.__name__ in kinds), None
    )


def active_backend_name(modules: Mapping[str, ModuleType] | None = None) -> str | None:
    """Returns the framework that the script uses: Keras's own, else the first one loaded.

    Args:
        modules: Loaded modules by name. Defaults to `sys.modules`.
    """
    modules = sys.modules if modules is None else modules
    config = getattr(modules.get("keras"), "config", None)
    ask = getattr(config, "backend", None)
    if ask is not None:  # it is not there yet while Keras is being imported
        name = ask()
        return name if name in BACKEND_NAMES else None
    return next((name for name in BACKEND_NAMES if name in modules), None)


def chosen_backend_name() -> str:
    """Returns the framework that Keras uses or, if it is not loaded yet, will use.

    Keras decides by `KERAS_BACKEND`, then by its own file, and else takes TensorFlow.
    """
    ask = getattr(getattr(sys.modules.get("keras"), "config", None), "backend", None)
    if ask is not None:
        return str(ask())
    home = os.environ.get("KERAS_HOME") or Path("~/.keras").expanduser()
    try:
        written = json.loads(Path(home, "keras.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        written = {}
    return os.environ.get("KERAS_BACKEND") or str(written.get("backend", "tensorflow"))
