"""Family MF3, resources: summary writers and figures opened again and again, never closed."""

import ast
from collections.abc import Iterator

from memfit.lint.rules.rule import Match, Rule
from memfit.lint.script.constants import argument
from memfit.lint.script.repetition import Repeat
from memfit.lint.script.script import Script, shown
from memfit.lint.script.tree import LOOPS

WRITER_IN_LOOP = Rule(
    "MF306",
    "writer-in-loop",
    "accumulating-writers",
    "A summary writer opened at every pass and never closed keeps its files and queues.",
)
FIGURE_IN_LOOP = Rule(
    "MF307",
    "figure-in-loop",
    "accumulating-figures",
    "A figure opened at every pass and never closed stays in pyplot's own list.",
)
RULES = (WRITER_IN_LOOP, FIGURE_IN_LOOP)

_PYPLOT = "matplotlib.pyplot."
_FIGURES = {f"{_PYPLOT}figure", f"{_PYPLOT}subplots", f"{_PYPLOT}subplot_mosaic"}
# In a notebook `show` closes; in a script it waits until a user has closed. Where it is
# called, figures are made to be shown.
_SHOWING = f"{_PYPLOT}show"
_CLOSING = f"{_PYPLOT}close"


def check(script: Script) -> Iterator[Match]:
    """Yields what `script` opens again and again and never closes."""
    for call in script.tree.calls:
        name = script.names.called(call)
        if name in _FIGURES:
            yield from _figure(script, call)
        elif script.kinds.of(call) == "writer" and name is not None:
            yield from _writer(script, call)


def _figure(script: Script, call: ast.Call) -> Iterator[Match]:
    repeat = script.repeats.of(call)
    if repeat is None or script.repeats.is_guarded(call, repeat):
        return
    is_subplots = not (script.names.called(call) or "").endswith("figure")
    number = argument(call, 99 if is_subplots else 0, "num")
    if number is not None or _is_closed(script, call, repeat):
        return  # a figure with a number is opened once and used again
    yield Match(
        FIGURE_IN_LOOP,
        call,
        f"{shown(call)} opens a figure {repeat.each}, and none is closed",
        f"add {_close(script, call)} when the figure is saved",
    )


def _close(script: Script, call: ast.Call) -> str:
    parent = script.tree.parent(call)
    pyplot = ast.unparse(call.func).rpartition(".")[0]
    closing = f"{pyplot}.close" if pyplot else "plt.close"
    if isinstance(parent, ast.Assign):
        target = parent.targets[0]
        figure = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
        return f"{closing}({ast.unparse(figure)})"
    return f"{closing}()"


def _is_closed(script: Script, call: ast.Call, repeat: Repeat) -> bool:
    if any(_is_shown(script, other) for other in script.tree.calls):
        return True
    roots = [repeat.node, script.tree.function(call)]
    return any(
        script.names.called(other) == _CLOSING
        for root in roots
        if root is not None
        for other in script.training.calls(root)
    )


def _is_shown(script: Script, call: ast.Call) -> bool:
    """Whether `call` shows figures, or hands one to TensorBoard, which closes it."""
    is_handed = isinstance(call.func, ast.Attribute) and call.func.attr == "add_figure"
    return is_handed or script.names.called(call) == _SHOWING


def _writer(script: Script, call: ast.Call) -> Iterator[Match]:
    repeat = script.repeats.loop(call) or script.repeats.hook(call) or _epochs(script, call)
    if repeat is None or script.repeats.is_guarded(call, repeat):
        return
    parent = script.tree.parent(call)
    is_managed = isinstance(parent, ast.withitem) and parent.context_expr is call
    is_kept = isinstance(parent, ast.Dict | ast.List | ast.DictComp | ast.ListComp)
    if is_managed or is_kept or _calls_close(script, repeat):
        return
    yield Match(
        WRITER_IN_LOOP,
        call,
        f"{shown(call)} opens a writer {repeat.each}, and none is closed",
        f"open it once, outside {repeat.label}, or call close() on it when the pass ends",
    )


def _epochs(script: Script, call: ast.Call) -> Repeat | None:
    """Returns the loop over epochs that `call` is reached from; runs may have a writer each."""
    repeat = script.repeats.of(call)
    if repeat is None or not isinstance(repeat.node, LOOPS):
        return None
    return repeat if script.training.is_epoch_loop(repeat.node) else None


def _calls_close(script: Script, repeat: Repeat) -> bool:
    return any(
        isinstance(call.func, ast.Attribute) and call.func.attr == "close"
        for call in script.training.calls(repeat.node)
    )
