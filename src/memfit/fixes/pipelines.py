"""Pipelines of data with their stages in an order, and their buffers of a size, that fit memory."""

import ast

# What moving a cache forward may change, besides memory.
CACHED_STAYS = (
    "A cache keeps what stands before it, so random maps (and shuffle) belong after it: before it, "
    "every epoch gets the same."
)
_BATCHING = frozenset({"batch", "padded_batch", "ragged_batch"})
# What may stand between a batch and a shuffle for them to change places. Past a take or a skip,
# for one, a shuffle would mix what is trained on with what is held out.
_TRANSPARENT = frozenset({"filter", "map", "prefetch", "repeat", "with_options"})
_ENOUGH_PREFETCHED = 2
_ENOUGH_QUEUED = 10


def reorder(module: ast.Module, stage: str) -> bool:
    """Fixes the pipelines in `module`, in place; whether there was anything to fix.

    Args:
        module: The statement.
        stage: The buffer that is too large: `"shuffle"`, `"cache"`, `"prefetch"` or `"queue"`;
            empty for any.
    """
    before = ast.dump(module)
    _Reorderer(stage).visit(module)
    return ast.dump(module) != before


class _Reorderer(ast.NodeTransformer):
    def __init__(self, stage: str) -> None:
        self._stage = stage

    def visit_Call(self, node: ast.Call) -> ast.AST:
        root, calls = _chain(node)
        for call in calls:
            call.args = [self.visit(argument) for argument in call.args]
            call.keywords = [self.visit(keyword) for keyword in call.keywords]
        root = self.visit(root)
        if self._is_asked("cache"):
            calls = _cache_before_repeat(calls)
        if self._is_asked("shuffle"):
            calls = _shuffle_before_batch(calls)
        if self._is_asked("prefetch"):
            _prefetch_few(calls, is_certain=bool(self._stage))
        if self._is_asked("queue"):
            _queue_few(calls, is_certain=bool(self._stage))
        return _joined(root, calls)

    def _is_asked(self, stage: str) -> bool:
        return self._stage in ("", stage)


def _chain(node: ast.Call) -> tuple[ast.expr, list[ast.Call]]:
    """Returns what a chain of calls begins with, and its calls in the order in which they run."""
    calls = [node]
    while isinstance(calls[-1].func, ast.Attribute) and isinstance(calls[-1].func.value, ast.Call):
        calls.append(calls[-1].func.value)
    function = calls[-1].func
    root = function.value if isinstance(function, ast.Attribute) else function
    return root, calls[::-1]


def _joined(root: ast.expr, calls: list[ast.Call]) -> ast.expr:
    node = root
    for call in calls:
        if isinstance(call.func, ast.Attribute):
            call.func.value = node
        else:
            call.func = node
        node = call
    return node


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def _cache_before_repeat(calls: list[ast.Call]) -> list[ast.Call]:
    names = [_name(call) for call in calls]
    if "repeat" not in names:
        return calls
    first = names.index("repeat")
    at = next((at for at, call in enumerate(calls) if at > first and _is_in_memory(call)), None)
    if at is None:
        return calls
    return [*calls[:first], calls[at], *calls[first:at], *calls[at + 1 :]]


def _is_in_memory(call: ast.Call) -> bool:
    return _name(call) == "cache" and not call.args and not call.keywords


def _shuffle_before_batch(calls: list[ast.Call]) -> list[ast.Call]:
    names = [_name(call) for call in calls]
    first = next((at for at, name in enumerate(names) if name in _BATCHING), len(names))
    if "shuffle" not in names[first:]:
        return calls
    at = names.index("shuffle", first)
    between = set(names[first + 1 : at])
    if between <= _TRANSPARENT:
        return [*calls[:first], calls[at], *calls[first:at], *calls[at + 1 :]]
    if between <= {"cache", "prefetch"}:  # a shuffle before a cache would be the same every epoch
        return [*calls[:first], *calls[first + 1 : at + 1], calls[first], *calls[at + 1 :]]
    return calls


def _prefetch_few(calls: list[ast.Call], *, is_certain: bool) -> None:
    for call in calls:
        if _name(call) != "prefetch":
            continue
        if call.args:
            call.args[0] = _at_most(call.args[0], _ENOUGH_PREFETCHED, is_certain=is_certain)
        for keyword in call.keywords:
            if keyword.arg == "buffer_size":
                keyword.value = _at_most(keyword.value, _ENOUGH_PREFETCHED, is_certain=is_certain)


def _queue_few(calls: list[ast.Call], *, is_certain: bool) -> None:
    for call in calls:
        for keyword in call.keywords:
            if keyword.arg == "max_queue_size":
                keyword.value = _at_most(keyword.value, _ENOUGH_QUEUED, is_certain=is_certain)


def _at_most(size: ast.expr, most: int, *, is_certain: bool) -> ast.expr:
    """Returns `most` for a larger number, and for a name if that is certain to be the fault."""
    match size:
        case ast.Constant(value=int() as number):
            return ast.Constant(most) if number > most else size
        case ast.Attribute(attr="AUTOTUNE") | ast.Name(id="AUTOTUNE") | ast.UnaryOp():
            return size
    return ast.Constant(most) if is_certain else size
