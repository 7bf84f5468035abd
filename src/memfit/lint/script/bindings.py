"""Every place in a script where a name gets a value."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from memfit.lint.script.tree import FUNCTIONS, Function, Scope, Tree


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """One place where a name gets a value.

    Attributes:
        key: The name, or an attribute such as `"self.loss"`.
        node: The statement or clause that does it.
        position: From where on in the script it holds.
        how: `"assign"`, `"augment"`, `"for"`, `"with"`, `"parameter"`, `"definition"` or
            `"import"`.
        value: The expression it comes from, where there is one.
        path: Which element of `value`, and of that one, where it is taken apart.
        full: For an import, the full name.
    """

    key: str
    node: ast.AST
    position: int
    how: str
    value: ast.expr | None = None
    path: tuple[int, ...] = ()
    full: str = ""


def read_bindings(tree: Tree) -> Iterator[tuple[Scope, Binding]]:
    """Yields each binding of `tree` with the scope that it belongs to."""
    shared = {
        (tree.scope(node), name): _home(tree, node)
        for node in tree.within(tree.module, ast.Global, ast.Nonlocal)
        for name in node.names
    }
    for node in tree.within(tree.module, ast.AST):
        for binding in _bindings_of(tree, node):
            scope = _scope_of(tree, node)
            scope = shared.get((scope, binding.key), scope)
            yield scope, binding
            owner = tree.class_of(node) if binding.key.startswith("self.") else None
            if owner is not None and owner is not scope:
                yield owner, binding


def _home(tree: Tree, node: ast.Global | ast.Nonlocal) -> Scope:
    if isinstance(node, ast.Global):
        return tree.module
    return tree.scope(tree.scope(node))


def _scope_of(tree: Tree, node: ast.AST) -> Scope:
    parent = tree.parent(node)
    if isinstance(node, ast.arg) and isinstance(parent, ast.arguments):
        function = tree.parent(parent)
        if isinstance(function, FUNCTIONS):
            return function
    return tree.scope(node)


def _bindings_of(tree: Tree, node: ast.AST) -> Iterator[Binding]:
    match node:
        case ast.Import() | ast.ImportFrom():
            yield from _imports(tree, node)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield Binding(node.name, node, tree.begin(node), "definition")
        case ast.arg():
            yield Binding(node.arg, node, tree.begin(node), "parameter")
        case ast.For() | ast.AsyncFor() | ast.comprehension():
            yield from _looped(tree, node)
        case ast.withitem() if node.optional_vars is not None:
            made = Binding("", node, tree.end(node), "with", node.context_expr)
            yield from _targets(node.optional_vars, made)
        case _:
            yield from _assigned(tree, node)


def _assigned(tree: Tree, node: ast.AST) -> Iterator[Binding]:
    match node:
        case ast.Assign():
            for target in node.targets:
                yield from _targets(target, Binding("", node, tree.end(node), "assign", node.value))
        case ast.AnnAssign() | ast.NamedExpr() if node.value is not None:
            made = Binding("", node, tree.end(node), "assign", node.value)
            yield from _targets(node.target, made)
        case ast.AugAssign():
            made = Binding("", node, tree.end(node), "augment", node.value)
            yield from _targets(node.target, made)


def _looped(tree: Tree, node: ast.For | ast.AsyncFor | ast.comprehension) -> Iterator[Binding]:
    """Yields what a loop sets; in a comprehension, what it sets is used before it is written."""
    if isinstance(node, ast.comprehension):
        around = tree.parent(node) or node
        made = Binding("", around, tree.begin(around), "for", node.iter)
    else:
        made = Binding("", node, tree.end(node.iter), "for", node.iter)
    yield from _targets(node.target, made)


def _imports(tree: Tree, node: ast.Import | ast.ImportFrom) -> Iterator[Binding]:
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            full = f"{'.' * node.level}{node.module or ''}.{alias.name}"
            key = alias.asname or alias.name
        else:
            full = alias.name if alias.asname else alias.name.split(".")[0]
            key = alias.asname or full
        yield Binding(key, node, tree.end(node), "import", full=full)


def _targets(target: ast.expr, made: Binding) -> Iterator[Binding]:
    match target:
        case ast.Name(id=key):
            yield _renamed(made, key)
        case ast.Attribute(value=ast.Name(id=base), attr=attr):
            yield _renamed(made, f"{base}.{attr}")
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for index, element in enumerate(elements):
                inner = _renamed(made, "", (*made.path, index))
                yield from _targets(element, inner)
        case ast.Starred(value=value):
            yield from _targets(value, made)


def _renamed(made: Binding, key: str, path: tuple[int, ...] | None = None) -> Binding:
    path = made.path if path is None else path
    return Binding(key, made.node, made.position, made.how, made.value, path)


def parameters(function: Function) -> list[str]:
    """Returns the names of the parameters of `function`, in order."""
    arguments = function.args
    return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
