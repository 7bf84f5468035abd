"""PyTorch: devices through `torch.cuda`, steps through its optimizers' hook."""

import functools
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from memfit.backends.observe import (
    VIEW_FACTOR,
    Compilation,
    Counted,
    DataStage,
    DeviceMemory,
    LiveObject,
    Observer,
    kind_by_class,
)
from memfit.backends.observe.wrapping import tell_after
from memfit.failsafe import harmless

FIT_COPIES = 0
BATCH_COPIES = 3.1
BEND = 1.4  # what malloc wastes grows with the tensors
COPIES_SHUFFLED = False
_KINDS = {
    "Optimizer": "optimizer",
    "Module": "model",
    "DataLoader": "dataset",
    "_BaseDataLoaderIter": "iterator",
    "SummaryWriter": "writer",
}
_MOST_NODES = 20_000
_MOST_NODES_OPENED = 200


def read_devices() -> tuple[DeviceMemory, ...]:
    """Returns torch's CUDA devices; none before CUDA is up, and none for the CPU."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return ()
    return tuple(_read_device(torch, index) for index in range(torch.cuda.device_count()))


def reset_peaks() -> bool:
    """Sets the peak of each CUDA device to what is in use now."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        for index in range(torch.cuda.device_count()):
            torch.cuda.reset_peak_memory_stats(index)
    return True


def list_devices() -> tuple[str, ...]:
    """Returns the devices that torch sees. Imports it: for a process of its own."""
    import torch

    return ("CPU:0", *(f"GPU:{index}" for index in range(torch.cuda.device_count())))


def describe(value: Any) -> LiveObject | None:
    """Returns what an object of torch is; a tensor that keeps its graph is a `"graph"`."""
    torch: Any = sys.modules["torch"]
    if not isinstance(value, torch.Tensor):
        name = kind_by_class(_KINDS, value)
        return LiveObject(name, 0, id(value), type(value).__name__) if name else None
    kind = "graph" if value.grad_fn is not None else "tensor"
    if value.device.type != "cpu" or value.layout != torch.strided:
        return LiveObject(kind, 0, id(value), f"{value.dtype} on {value.device}")
    storage = value.untyped_storage()
    own_bytes = value.numel() * value.element_size()
    if kind == "tensor" and storage.nbytes() >= VIEW_FACTOR * max(own_bytes, 1):
        kind = "torch view"
    text = f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}"
    return LiveObject(kind, storage.nbytes(), storage.data_ptr(), text)


def graph_length(value: Any) -> int:
    """Returns how many steps the record behind a tensor has, up to a bound."""
    return sum(1 for _ in _nodes([value], _MOST_NODES))


def graph_size_bytes(values: Sequence[Any]) -> int:
    """Returns the bytes that these records keep together, apart from parameters."""
    torch: Any = sys.modules["torch"]
    sizes: dict[int, int] = {}
    opened = list(_nodes(values, _MOST_NODES_OPENED))
    for node in opened:
        for tensor in _saved(node):
            if isinstance(tensor, torch.Tensor) and not isinstance(tensor, torch.nn.Parameter):
                storage = tensor.untyped_storage()
                sizes[storage.data_ptr()] = storage.nbytes()
    # Where there are more steps than were opened, the others are taken to be like these.
    length = sum(1 for _ in _nodes(values, _MOST_NODES))
    return round(sum(sizes.values()) * length / max(len(opened), 1))


def _nodes(values: Sequence[Any], most: int) -> Iterator[Any]:
    pending = deque(value.grad_fn for value in values if value.grad_fn is not None)
    seen: set[Any] = set()
    while pending and len(seen) < most:
        node = pending.popleft()
        if node in seen:
            continue
        seen.add(node)
        yield node
        pending.extend(inner for inner, _ in node.next_functions if inner is not None)


def _saved(node: Any) -> Iterator[Any]:
    for name in dir(node):
        if name.startswith("_saved_"):
            try:
                yield getattr(node, name)
            except RuntimeError:  # given back after `backward`
                return


def watch(observer: Observer) -> None:
    """Tells of steps of every `torch.optim` optimizer, of compilations, and of what is made.

    Keras's own optimizers are watched by the agent.
    """
    torch: Any = sys.modules["torch"]
    optimizers = sys.modules["torch.optim.optimizer"]
    optimizers.register_optimizer_step_post_hook(lambda *_args: observer.stepped())
    tell_after(torch.optim.Optimizer, "__init__", lambda one: observer.made("optimizer", one))
    tell_after(torch.utils.data.DataLoader, "__init__", lambda one: observer.made("loader", one))
    original = torch.compile

    @functools.wraps(original)
    def compile_and_tell(*args: Any, **kwargs: Any) -> Any:
        compiled = original(*args, **kwargs)
        _watch_compiler(observer)
        return compiled

    torch.compile = compile_and_tell


def is_tracing() -> bool:
    """Returns `False`: torch traces outside of the script's steps."""
    return False


def is_compiler_loaded() -> bool:
    """Returns whether `torch.compile` is loaded; Keras loads it, for seconds, to clear it."""
    return "torch._dynamo" in sys.modules


def count() -> Counted:
    """Returns nothing: torch keeps no registries that grow."""
    return Counted()


def registered() -> frozenset[str]:
    """Returns nothing: torch keeps nothing for a model that is gone."""
    return frozenset()


def release(names: frozenset[str]) -> None:
    """Gives cached device memory back."""
    torch: Any = sys.modules["torch"]
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def after_compiling(act: Callable[[], object]) -> Callable[[], None]:
    """Does nothing: what is left of tracing is little."""
    return lambda: None


def watch_scalars(tell: Callable[[float], None]) -> Callable[[], None]:
    """Does nothing: numbers are not kept."""
    return lambda: None


def read_stages() -> list[DataStage]:
    """Returns nothing: a `DataLoader` keeps its batches in worker processes."""
    return []


_watched_handlers: list[Any] = []


@harmless
def _watch_compiler(observer: Observer) -> None:
    """Once, and only when the script compiles: the compiler takes seconds to load."""
    handler = sys.modules["torch._dynamo.callback"].callback_handler
    if handler in _watched_handlers:
        return
    _watched_handlers.append(handler)
    handler.register_end_callback(harmless(lambda _told: observer.compiled(_compilation())))


def _compilation() -> Compilation:
    metrics = sys.modules["torch._dynamo.utils"].get_compilation_metrics()
    if not metrics:
        return Compilation("torch.compile", "")
    last = metrics[-1]
    reason = str(last.recompile_reason or "").partition(": ")[2]
    return Compilation(
        "torch.compile",
        last.co_name or "",
        last.co_filename,
        last.co_firstlineno,
        arguments={"guard": reason} if reason else {},
    )


def _read_device(torch: Any, index: int) -> DeviceMemory:
    return DeviceMemory(
        device=f"GPU:{index}",
        in_use_bytes=torch.cuda.memory_allocated(index),
        peak_bytes=torch.cuda.max_memory_allocated(index),
        limit_bytes=torch.cuda.get_device_properties(index).total_memory,
    )
