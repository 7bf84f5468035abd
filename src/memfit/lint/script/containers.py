"""Values put into a container, and whether the container lives on from pass to pass."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from memfit.lint.script.names import Names, dotted
from memfit.lint.script.repetition import Repetition
from memfit.lint.script.tree import FUNCTIONS, Function, Loop

_ADDING = {"append": 0, "appendleft": 0, "insert": 1}
_EMPTYING = {"clear", "pop", "popleft", "popitem", "remove"}
_CONTAINERS = {
    *("dict", "list", "collections.defaultdict", "collections.OrderedDict", "collections.deque"),
    "set",
}
# Methods that run once; what they set is not emptied again.
RUN_ONCE = {"__init__", "build", "on_train_begin", "set_model", "setUp", "__post_init__"}


@dataclass(frozen=True, slots=True)
class Addition:
    """A value that is put into a container.

    Attributes:
        node: The call or statement that does it.
        key: The container, such as `"self.outputs"`.
        value: What is put there.
    """

    node: ast.AST
    key: str
    value: ast.expr


class ContainerAdditions:
    """The values that a script puts into containers.

    Args:
        names: The names of the script.
        repeats: What runs again and again in it.
    """

    def __init__(self, names: Names, repeats: Repetition) -> None:
        self.names = names
        self.tree = names.tree
        self.repeats = repeats
        self.all = tuple(
            keep
            for node in self.tree.within(self.tree.module, ast.AST)
            for keep in self._read(node)
        )

    def _read(self, node: ast.AST) -> Iterator[Addition]:
        match node:
            case ast.Call(func=ast.Attribute(attr=method, value=container), args=values):
                index = _ADDING.get(method)
                if index is not None and len(values) > index:
                    yield from _keep(node, container, values[index])
                elif method == "extend" and len(values) == 1:
                    yield from _elements(node, container, values[0])
            case ast.AugAssign(op=ast.Add(), target=container, value=value):
                yield from _elements(node, container, value)
            case ast.Assign(targets=[ast.Subscript(value=container, slice=index)], value=value):
                if self._is_container(container) and self._is_new_each_time(index):
                    yield from _keep(node, container, value)

    def _is_container(self, node: ast.expr) -> bool:
        key = base_key(node)
        binding = self.names.lookup(key, node) if key else None
        match binding and binding.value:
            case ast.Dict() | ast.List() | ast.ListComp() | ast.DictComp():
                return True
            case ast.Call() as call:
                return self.names.called(call) in _CONTAINERS
        return False

    def _is_new_each_time(self, index: ast.expr) -> bool:
        """Whether `index` changes with the outermost loop, or with the argument of a hook."""
        loops = self.tree.loops(index)
        for name in ast.walk(index):
            if not isinstance(name, ast.Name):
                continue
            binding = self.names.lookup(name.id, name)
            if binding is not None and loops and binding.node is loops[-1]:
                return True
            if binding is not None and binding.how == "parameter" and not loops:
                return self.repeats.hook(index) is not None
        return False

    def lives_on(self, keep: Addition) -> bool:
        """Whether the container still holds what earlier passes put into it."""
        loops = self.tree.loops(keep.node)
        for binding in self.names.bindings(keep.key, keep.node):
            if binding.how == "augment":
                continue
            if any(self.tree.is_within(binding.node, loop) for loop in loops):
                return False
            if self._is_reset(keep, binding.node) or _is_limited(binding.value):
                return False
        return not self._is_emptied(keep) and not self._is_for_one_call(keep, loops)

    def _is_reset(self, keep: Addition, node: ast.AST) -> bool:
        """Whether `node` gives an attribute or a global a new container as training goes on."""
        function = self.tree.function(node)
        if isinstance(function, ast.Lambda) or function is None:
            return False
        is_own = function is self.tree.function(keep.node)
        if keep.key.startswith("self."):
            return function.name not in RUN_ONCE
        return not is_own and self.names.owner(keep.key, keep.node) is self.tree.module

    def _is_emptied(self, keep: Addition) -> bool:
        owner = self.names.owner(keep.key, keep.node)
        for node in self.tree.within(owner, ast.Call, ast.Delete, ast.Assign):
            match node:
                case ast.Call(func=ast.Attribute(attr=method, value=container)):
                    is_emptied = method in _EMPTYING and base_key(container) == keep.key
                case ast.Delete(targets=targets):
                    parts = [one.value for one in targets if isinstance(one, ast.Subscript)]
                    is_emptied = any(base_key(part) == keep.key for part in parts)
                case ast.Assign(targets=[ast.Subscript(value=container, slice=ast.Slice())]):
                    is_emptied = base_key(container) == keep.key
                case _:
                    is_emptied = False
            if is_emptied:
                return True
        return False

    def _is_for_one_call(self, keep: Addition, loops: list[Loop]) -> bool:
        """Whether the container is a local of a function that makes one pass over data."""
        owner = self.names.owner(keep.key, keep.node)
        if not isinstance(owner, FUNCTIONS) or owner is not self.tree.function(keep.node):
            return False
        if len(loops) > 1:
            return False
        is_pass = bool(loops) and isinstance(loops[0], ast.For) and not is_counted(loops[0])
        return is_pass or self.repeats.is_hook(owner) or self._is_called_often(owner)

    def _is_called_often(self, function: Function) -> bool:
        return any(self.repeats.of(call) is not None for call in self.repeats.calls(function))

    def is_read(self, keep: Addition) -> bool:
        """Whether the script ever reads the container."""
        owner = self.names.owner(keep.key, keep.node)
        for node in self.tree.within(owner, ast.Name, ast.Attribute):
            if dotted(node) != keep.key or not isinstance(node.ctx, ast.Load):
                continue
            parent = self.tree.parent(node)
            is_adding = isinstance(parent, ast.Attribute) and parent.attr in (*_ADDING, "extend")
            if not is_adding:
                return True
        return False


def is_counted(loop: Loop) -> bool:
    """Whether `loop` counts, as `for step in range(n)` and `while` do, and reads no data."""
    if not isinstance(loop, ast.For):
        return True
    match loop.iter:
        case ast.Call(func=ast.Name(id="range")) | ast.Call(func=ast.Attribute(attr="count")):
            return True
        case ast.Call(func=ast.Name(id="tqdm" | "trange"), args=[inner, *_]):
            return isinstance(inner, ast.Call) and ast.unparse(inner.func) == "range"
    return False


def base_key(node: ast.AST) -> str | None:
    """Returns the variable that `node` is part of: `history["loss"]` is part of `history`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    match node:
        case ast.Call(func=ast.Attribute(attr="setdefault", value=inner)):
            return base_key(inner)
    return dotted(node)


def _keep(node: ast.AST, container: ast.expr, value: ast.expr) -> Iterator[Addition]:
    key = base_key(container)
    if key is not None:
        yield Addition(node, key, value)


def _elements(node: ast.AST, container: ast.expr, value: ast.expr) -> Iterator[Addition]:
    if isinstance(value, ast.List | ast.Tuple):
        for element in value.elts:
            yield from _keep(node, container, element)


def _is_limited(value: ast.expr | None) -> bool:
    match value:
        case ast.Call(keywords=keywords):
            return any(keyword.arg == "maxlen" for keyword in keywords)
        case ast.Subscript(slice=ast.Slice()):
            return True
    return False
