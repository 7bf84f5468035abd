"""The user's own statement, fixed: what a finding can show instead of advice in general."""

import ast
import textwrap
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from memfit.fixes.additions import Replacement, change_added
from memfit.fixes.guess_kind import kind_of, last_name
from memfit.fixes.pipelines import reorder

# Where pyplot is known by this name, its figures are closed by it too.
_PYPLOT = ("plt", "pyplot", "pylab")


def fix_statement(
    code: str,
    statement: str,
    *,
    item_kind: str = "",
    holder: str = "",
    argument: str = "",
    compiler: str = "",
) -> str | None:
    """Returns `statement` fixed for a finding, or `None` where no honest rewrite is known.

    Args:
        code: Code of the finding.
        statement: Source of one statement, or of the line that opens a block.
        item_kind: What is kept: `"graph"`, `"tape"`, `"history"`, `"view"` (of a numpy array),
            `"torch view"`, `"many numbers"` (a tensor that has a shape), ... For a buffer its
            stage: `"shuffle"`, `"cache"`, `"prefetch"` or `"queue"`; with none, all stages are
            looked at.
        holder: Who keeps it, such as `"losses (global of train.py)"`; for a retraced function its
            name. It selects the call where a statement has several.
        argument: The argument of a retraced function that is a Python number.
        compiler: What traces that function, such as `"tf.function"`.

    Returns:
        The statement as Python prints it. Empty text means that the line is to be deleted.

    Example:
    >>> fix_statement("held-graph", "total += loss")
    'total += loss.detach()'
    >>> fix_statement("buffer-too-large", "ds = ds.batch(32).shuffle(1000)")
    'ds = ds.shuffle(1000).batch(32)'
    """
    rewriters: dict[str, Callable[[ast.Module], bool]] = {
        "held-graph": lambda module: _release_graph(module, item_kind, holder),
        "held-tensors": lambda module: _shrink(module, item_kind, holder),
        "buffer-too-large": lambda module: reorder(module, item_kind),
        "uncollected-garbage": _leave_collector_on,
        "retracing": lambda module: _pass_tensor(module, argument, compiler, holder),
    }
    rewriter, source = rewriters.get(code), _parse(statement)
    if rewriter is None or source is None or not rewriter(source.module):
        return None
    return source.unparse()


def closing(statement: str) -> str | None:
    """Returns what closes the figure that `statement` opens, or `None` if it opens none.

    Example:
    >>> closing("fig, ax = plt.subplots(2, 2)")
    'plt.close(fig)'
    """
    source = _parse(statement)
    match source.module.body if source is not None else []:
        case [ast.Expr(value=ast.Call() as call)]:
            target = None
        case [ast.Assign(targets=[target], value=ast.Call() as call)]:
            pass
        case [ast.AnnAssign(target=target, value=ast.Call() as call)]:
            pass
        case _:
            return None
    pyplot = _pyplot_of(call)
    if pyplot is None:
        return None
    return f"{pyplot}.close({_figure_of(target, call)})"


@dataclass(frozen=True, slots=True)
class _Source:
    """A parsed statement, or the line that opens a block, with an empty body."""

    module: ast.Module
    is_opening: bool

    def unparse(self) -> str:
        text = ast.unparse(ast.fix_missing_locations(self.module))
        return text.removesuffix("pass").rstrip() if self.is_opening else text


def _parse(statement: str) -> _Source | None:
    text = textwrap.dedent(statement).strip()
    is_opening = text.endswith(":")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a user's "\\d" is no matter of ours
            return _Source(ast.parse(f"{text} pass" if is_opening else text), is_opening)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _release_graph(module: ast.Module, item_kind: str, holder: str) -> bool:
    """Adds the tensor without its past: all that the script does with it later still works."""

    def released(node: ast.expr, *, is_alone: bool) -> ast.expr | None:
        match kind_of(node):
            case "plain":
                return node
            case "tensor" | "scalar":
                return _method(node, "detach")
            case "unknown" if is_alone:
                return _method(node, "detach")
        return None

    return item_kind != "tape" and change_added(module, holder, released)


def _shrink(module: ast.Module, item_kind: str, holder: str) -> bool:
    """Adds the number of a loss, or a copy of a part that would keep all of its array."""
    copying = {"view": "copy", "torch view": "clone"}.get(item_kind)

    def number(node: ast.expr, *, is_alone: bool) -> ast.expr | None:
        kinds = {"plain": node, "scalar": _call("float", node)}
        return kinds.get(kind_of(node))

    def copy(node: ast.expr, *, is_alone: bool) -> ast.expr | None:
        is_part = isinstance(node, ast.Subscript) or is_alone
        if not is_part or not isinstance(node, ast.Subscript | ast.Name | ast.Attribute | ast.Call):
            return node
        is_copied = isinstance(node, ast.Call) and last_name(node.func) in ("copy", "clone")
        return node if is_copied or copying is None else _method(node, copying)

    change: Replacement = number if copying is None else copy
    is_whole = item_kind in ("text", "many numbers")
    return not is_whole and change_added(module, holder, change)


def _leave_collector_on(module: ast.Module) -> bool:
    """Takes out the calls that stop the collector."""
    kept = [one for one in module.body if not _stops_collector(one)]
    is_changed = len(kept) < len(module.body)
    module.body = kept
    return is_changed


def _stops_collector(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id="gc"), attr="disable" | "freeze"), args=[]
            )
        ):
            return True
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=ast.Name(id="gc"), attr="set_threshold"),
                args=[ast.Constant(value=0), *_],
            )
        ):
            return True
    return False


def _pass_tensor(module: ast.Module, argument: str, compiler: str, function: str) -> bool:
    """Makes a tensor of the Python number that a `tf.function` gets."""
    if compiler != "tf.function" or not argument:
        return False
    calls = [one for one in ast.walk(module) if isinstance(one, ast.Call)]
    found = [
        value
        for call in calls
        if _is_called(call, function)
        for name, value in _arguments(call)
        if isinstance(value, ast.Name | ast.Attribute)
        and argument in (name, ast.unparse(value), last_name(value))
    ]
    if len(found) != 1:
        return False
    _Replacer(found[0], _tensor(found[0])).visit(module)
    return True


def _arguments(call: ast.Call) -> list[tuple[str | None, ast.expr]]:
    keywords = [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg]
    return [*((None, value) for value in call.args), *keywords]


class _Replacer(ast.NodeTransformer):
    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self._old = old
        self._new = new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else self.generic_visit(node)


def _is_called(call: ast.Call, function: str) -> bool:
    last = function.rpartition(".")[2].removesuffix("()")
    return not last or last_name(call.func) == last


def _tensor(value: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(ast.Name("tf", ast.Load()), "constant", ast.Load()), [value], [])


def _call(function: str, value: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(function, ast.Load()), [value], [])


def _method(value: ast.expr, name: str) -> ast.expr:
    return ast.Call(ast.Attribute(value, name, ast.Load()), [], [])


def _pyplot_of(call: ast.Call) -> str | None:
    """Returns the user's name for pyplot, if `call` is one of its functions."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr == "close":
        return None
    module = call.func.value
    is_pyplot = isinstance(module, ast.Name | ast.Attribute)
    return ast.unparse(module) if is_pyplot and last_name(module) in _PYPLOT else None


def _figure_of(target: ast.expr | None, call: ast.Call) -> str:
    """Returns the user's name for the figure; empty for the one that is current."""
    function = last_name(call.func)
    match target:
        case ast.Tuple(elts=[first, *_]) if function == "subplots":
            target = first
        case ast.Name() | ast.Attribute() if function == "figure":
            pass
        case _:
            return ""
    is_named = isinstance(target, ast.Name | ast.Attribute) and last_name(target) != "_"
    return ast.unparse(target) if is_named else ""
