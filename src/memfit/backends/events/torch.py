"""PyTorch: steps through its optimizers' hook, compilations through `torch.compile`."""

import functools
import sys
from collections.abc import Callable
from typing import Any

from memfit.backends.events import Compilation, DataStage, Observer
from memfit.backends.events.wrapping import tell_after
from memfit.failsafe import harmless


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
    handler.register_end_callback(harmless(lambda _reported: observer.compiled(_compilation())))


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
