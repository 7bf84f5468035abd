"""Variables that are differentiated: those are tensors, whatever made them."""

import ast
from collections.abc import Iterator

from memfit.lint.script.bindings import Binding
from memfit.lint.script.names import Names, dotted

# Objects of other libraries that call `backward` on what they are given.
_HELPERS = ("accelerator", "fabric", "engine")


class GradientVariables:
    """The variables of a script that gradients are taken of.

    Args:
        names: The names of the script.

    Attributes:
        with_graph: Those that go backward in torch, and so have a graph.
        losses: Those that a tape or an optimizer is given.
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self.with_graph: set[Binding] = set()
        self.losses: set[Binding] = set()
        for call in names.tree.calls:
            if isinstance(call.func, ast.Attribute):
                self._note(call, call.func)

    def _note(self, call: ast.Call, method: ast.Attribute) -> None:
        key = dotted(method.value) or ""
        if method.attr == "backward":
            subjects = call.args[:1] if key.endswith(_HELPERS) else [method.value]
            self.with_graph.update(one for part in subjects for one in self._variables(part))
        elif method.attr in ("gradient", "minimize") and self._is_variable(method.value):
            self.losses.update(one for part in call.args[:1] for one in self._variables(part))

    def _is_variable(self, node: ast.expr) -> bool:
        """Whether `node` is an object of the script, not a module as in `np.gradient`."""
        return self.names.full_name(node) is None

    def _variables(self, node: ast.expr) -> Iterator[Binding]:
        match node:
            case ast.Name():
                binding = self.names.lookup(node.id, node)
                if binding is not None and binding.how in ("assign", "augment"):
                    yield binding
            case ast.BinOp(left=left, right=right):
                yield from self._variables(left)
                if not isinstance(node.op, ast.Div):
                    yield from self._variables(right)
            case ast.Call(func=ast.Attribute(attr="scale"), args=[inner]):
                yield from self._variables(inner)
            case ast.Call(func=ast.Attribute(attr="mean" | "sum", value=inner)):
                yield from self._variables(inner)
