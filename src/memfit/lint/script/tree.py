"""Where each part of a script stands: its order, its function, its loops, its branch."""

import ast
from collections.abc import Iterator, Sequence
from typing import TypeAlias, TypeVar, overload

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Loop: TypeAlias = ast.For | ast.AsyncFor | ast.While
Scope: TypeAlias = Function | ast.ClassDef | ast.Module

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_MARKS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)  # shared objects

_A = TypeVar("_A", bound=ast.AST)
_B = TypeVar("_B", bound=ast.AST)
_C = TypeVar("_C", bound=ast.AST)


class Tree:
    """A parsed script, with every node's place in it.

    Args:
        module: What `ast.parse` gave.

    Attributes:
        calls: All calls, in the order of the script.
    """

    def __init__(self, module: ast.Module) -> None:
        self.module = module
        self._parents: dict[ast.AST, ast.AST] = {}
        self._begin: dict[ast.AST, int] = {}
        self._end: dict[ast.AST, int] = {}
        self._order: list[ast.AST] = []
        self._scopes: dict[ast.AST, Scope] = {module: module}
        self._number()
        self.calls = self.within(module, ast.Call)

    def _number(self) -> None:
        order = self._order
        stack: list[ast.AST] = [self.module]
        while stack:  # not by recursion: generated code can be nested deeply
            node = stack.pop()
            self._begin[node] = self._end[node] = len(order)
            order.append(node)
            children = [one for one in ast.iter_child_nodes(node) if not isinstance(one, _MARKS)]
            scope, body = self._scopes[node], _body(node)
            for child in children:
                self._parents[child] = node
                self._scopes[child] = node if child in body else scope  # type: ignore[assignment]
            stack.extend(reversed(children))
        for node in reversed(order):
            parent = self._parents.get(node)
            if parent is not None:
                self._end[parent] = max(self._end[parent], self._end[node])

    @overload
    def within(self, root: ast.AST, kind: type[_A], /) -> list[_A]: ...
    @overload
    def within(self, root: ast.AST, kind: type[_A], other: type[_B], /) -> list[_A | _B]: ...
    @overload
    def within(
        self, root: ast.AST, kind: type[_A], other: type[_B], third: type[_C], /
    ) -> list[_A | _B | _C]: ...
    def within(self, root: ast.AST, *kinds: type[ast.AST]) -> Sequence[ast.AST]:
        """Returns the nodes of `kinds` in `root`, itself included, in the order of the script."""
        part = self._order[self._begin[root] : self._end[root] + 1]
        return [node for node in part if isinstance(node, kinds)]

    def begin(self, node: ast.AST) -> int:
        """Returns the number of `node` in the order of the script."""
        return self._begin[node]

    def end(self, node: ast.AST) -> int:
        """Returns the number of the last node inside `node`."""
        return self._end[node]

    def is_within(self, node: ast.AST, root: ast.AST) -> bool:
        """Whether `node` is `root` or inside it."""
        return self._begin[root] <= self._begin[node] <= self._end[root]

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Returns the node around `node`."""
        return self._parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Yields each node around `node` with the child through which it leads to `node`."""
        child, parent = node, self._parents.get(node)
        while parent is not None:
            yield parent, child
            child, parent = parent, self._parents.get(parent)

    def statement(self, node: ast.AST) -> ast.AST:
        """Returns the statement that `node` is part of."""
        while not isinstance(node, ast.stmt) and node in self._parents:
            node = self._parents[node]
        return node

    def scope(self, node: ast.AST) -> Scope:
        """Returns the function, class or module whose names `node` sees."""
        return self._scopes[node]

    def function(self, node: ast.AST) -> Function | None:
        """Returns the function that `node` runs in."""
        scope = self._scopes[node]
        while isinstance(scope, ast.ClassDef):
            scope = self._scopes[scope]
        return None if isinstance(scope, ast.Module) else scope

    def class_of(self, node: ast.AST) -> ast.ClassDef | None:
        """Returns the class that `node` is written in."""
        for parent, _ in self.ancestors(node):
            if isinstance(parent, ast.ClassDef):
                return parent
        return None

    def loops(self, node: ast.AST) -> list[Loop]:
        """Returns the loops around `node` in its own function, the innermost first."""
        found: list[Loop] = []
        for parent, child in self.ancestors(node):
            if isinstance(parent, (*FUNCTIONS, ast.ClassDef)):
                break
            if isinstance(parent, LOOPS) and _is_looped(parent, child):
                found.append(parent)
        return found

    def are_alternatives(self, one: ast.AST, other: ast.AST) -> bool:
        """Whether `one` and `other` stand in two branches of which only one can run."""
        arms = dict(self.ancestors(one))
        for parent, child in self.ancestors(other):
            if parent in arms:
                ours, theirs = _arm(parent, arms[parent]), _arm(parent, child)
                return None not in (ours, theirs) and ours != theirs
        return False

    def may_exclude(self, one: ast.AST, other: ast.AST) -> bool:
        """Whether each stands under a condition that the other does not: they may never meet."""
        ours = {parent for parent, _ in self.ancestors(one) if isinstance(parent, ast.If)}
        theirs = {parent for parent, _ in self.ancestors(other) if isinstance(parent, ast.If)}
        return bool(ours - theirs) and bool(theirs - ours)


def _body(node: ast.AST) -> set[ast.AST]:
    """Returns what belongs to the scope that `node` opens: no decorators, no defaults."""
    match node:
        case ast.Lambda(body=expression):
            return {expression}
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return set(node.body)
    return set()


def _is_looped(loop: Loop, child: ast.AST) -> bool:
    if isinstance(loop, ast.While) and child is loop.test:
        return True
    return child in loop.body


def _arm(parent: ast.AST, child: ast.AST) -> str | None:
    if isinstance(parent, ast.If | ast.IfExp):
        is_else = child is parent.orelse or (
            isinstance(parent.orelse, list) and child in parent.orelse
        )
        return None if child is parent.test else "else" if is_else else "if"
    if isinstance(parent, ast.Match) and isinstance(child, ast.match_case):
        return str(id(child))
    return None
