"""What a name stands for: imports under any alias, and the last value given to a variable."""

import ast
import builtins
import functools
from collections.abc import Iterator

from memfit.lint.script.bindings import Binding, read_bindings
from memfit.lint.script.tree import FUNCTIONS, Function, Scope, Tree

# Several spellings of one thing, longest first.
_SAME = (
    ("tensorflow.compat.v1.keras", "keras"),
    ("tensorflow.compat.v2.keras", "keras"),
    ("tensorflow.python.keras", "keras"),
    ("tensorflow.keras", "keras"),
    ("tf_keras", "keras"),
    ("tensorflow.compat.v1", "tensorflow"),
    ("tensorflow.compat.v2", "tensorflow"),
    ("keras.models.Sequential", "keras.Sequential"),
    ("keras.models.Model", "keras.Model"),
    ("keras.backend.clear_session", "keras.utils.clear_session"),
    ("keras.callbacks.Callback", "keras.Callback"),
    ("keras.layers.Layer", "keras.Layer"),
    ("keras.metrics.Metric", "keras.Metric"),
    ("keras.utils.PyDataset", "keras.PyDataset"),
    ("keras.utils.Sequence", "keras.PyDataset"),
    ("keras.optimizers.legacy", "keras.optimizers"),
    ("keras.optimizers.experimental", "keras.optimizers"),
    ("torch.utils.tensorboard.writer", "torch.utils.tensorboard"),
    ("jax.experimental.pjit", "jax"),
)
# Snippets are often shown without their imports.
_CUSTOMARY = {
    **{name: name for name in dir(builtins)},
    **{name: name for name in ("tensorflow", "keras", "torch", "jax", "numpy", "gc", "memfit")},
    "tf": "tensorflow",
    "np": "numpy",
    "pd": "pandas",
    "plt": "matplotlib.pyplot",
    "K": "keras.backend",
    "jnp": "jax.numpy",
    "F": "torch.nn.functional",
    "nn": "torch.nn",
}
_MOST_STEPS = 20  # a = b; b = a in a loop must end


class Names:
    """The names of a script.

    Args:
        tree: The script.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._bindings: dict[tuple[Scope, str], list[Binding]] = {}
        self.modules: set[str] = set()  # packages that the script imports
        for scope, binding in read_bindings(tree):
            self._bindings.setdefault((scope, binding.key), []).append(binding)
            if binding.how == "import":
                full = canonical(binding.full)
                self.modules |= {full.split(".")[0], binding.full.split(".")[0]}

    @property
    def uses_keras(self) -> bool:
        """Whether the script imports Keras or TensorFlow."""
        return bool(self.modules & {"keras", "tensorflow"})

    def lookup(self, key: str, at: ast.AST) -> Binding | None:
        """Returns what last gave `key` a value before `at`, or `None` if nothing did.

        Args:
            key: A name, or an attribute such as `"self.loss"`.
            at: Where it is read.
        """
        scope: Scope | None = self.tree.scope(at)
        is_own = True
        while scope is not None:
            found = self._bindings.get((scope, key))
            reaching = self._reaching(found or [], at) if is_own else found and found[-1]
            if reaching or (found and not key.startswith("self.")):
                return reaching or None
            scope, is_own = self._outer(scope, key), False
        return None

    def _outer(self, scope: Scope, key: str) -> Scope | None:
        if isinstance(scope, ast.Module):
            return None
        outer = self.tree.scope(scope)
        # Names of a class body are not seen by its methods; attributes of `self` are.
        while isinstance(outer, ast.ClassDef) and not key.startswith("self."):
            outer = self.tree.scope(outer)
        return outer

    def _reaching(self, found: list[Binding], at: ast.AST) -> Binding | None:
        if not found:
            return None
        position = self.tree.begin(at)
        before = [one for one in found if one.position < position]
        for binding in reversed(before):
            if not self.tree.are_alternatives(binding.node, at):
                return binding
        loops = self.tree.loops(at)
        carried = [one for one in found if any(self.tree.is_within(one.node, it) for it in loops)]
        return carried[-1] if carried else None

    def bindings(self, key: str, at: ast.AST) -> list[Binding]:
        """Returns every place that gives a value to the variable that `key` is at `at`."""
        scope: Scope | None = self.tree.scope(at)
        if key.startswith("self.") and (owner := self.tree.class_of(at)):
            return self._bindings.get((owner, key), [])
        while scope is not None:
            found = self._bindings.get((scope, key))
            if found:
                return found
            scope = self._outer(scope, key)
        return []

    def owner(self, key: str, at: ast.AST) -> Scope:
        """Returns the scope that the variable `key` belongs to."""
        found = self.bindings(key, at)
        if key.startswith("self."):
            return self.tree.class_of(at) or self.tree.module
        return self.tree.scope(found[0].node) if found else self.tree.module

    def full_name(self, node: ast.AST, steps: int = _MOST_STEPS) -> str | None:
        """Returns the dotted name of what `node` stands for, or `None` if it is a variable.

        Example: in a script with `from tensorflow import keras as k`, the node of
        `k.Sequential` is `"keras.Sequential"`.
        """
        if isinstance(node, ast.Attribute):
            base = self.full_name(node.value, steps)
            return None if base is None else canonical(f"{base}.{node.attr}")
        if not isinstance(node, ast.Name) or steps == 0:
            return None
        binding = self.lookup(node.id, node)
        if binding is None:
            return _CUSTOMARY.get(node.id)
        if binding.how == "import":
            return canonical(binding.full)
        is_alias = isinstance(binding.value, ast.Name | ast.Attribute) and not binding.path
        return self.full_name(binding.value, steps - 1) if binding.value and is_alias else None

    def called(self, node: ast.AST) -> str | None:
        """Returns the full name of what `node` calls, if it is a call of something imported."""
        return self.full_name(node.func) if isinstance(node, ast.Call) else None

    def function(self, node: ast.AST, steps: int = _MOST_STEPS) -> Function | None:
        """Returns the function of this script that `node` stands for."""
        if isinstance(node, FUNCTIONS):
            return node
        key = dotted(node)
        if key is None or steps == 0:
            return None
        binding = self.lookup(key, node)
        if binding is None:
            return self._method(node, key)
        if isinstance(binding.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return binding.node if binding.how == "definition" else None
        is_plain = binding.how == "assign" and not binding.path and binding.value is not None
        return self.function(binding.value, steps - 1) if is_plain and binding.value else None

    def _method(self, node: ast.AST, key: str) -> Function | None:
        """Returns the method that `self.step` or `trainer.step` is."""
        receiver, _, name = key.rpartition(".")
        if not isinstance(node, ast.Attribute) or not receiver:
            return None
        owner = self.tree.class_of(node) if receiver == "self" else self._class_of_object(node)
        return self._find_method(owner, name) if owner is not None else None

    def _find_method(
        self, owner: ast.ClassDef, name: str, steps: int = _MOST_STEPS
    ) -> Function | None:
        for one in owner.body:
            if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name == name:
                return one
        bases = [self.local_class(base) for base in owner.bases] if steps else []
        found = (self._find_method(base, name, steps - 1) for base in bases if base is not None)
        return next((one for one in found if one is not None), None)

    def _class_of_object(self, node: ast.Attribute) -> ast.ClassDef | None:
        """Returns the class of this script that what `node` is an attribute of was made of."""
        key = dotted(node.value)
        binding = self.lookup(key, node) if key else None
        value = binding.value if binding is not None and binding.how == "assign" else None
        for index in binding.path if binding is not None else ():
            value = value.elts[index] if isinstance(value, ast.Tuple) else None
        return self.local_class(value.func) if isinstance(value, ast.Call) else None

    def bases(self, owner: ast.ClassDef, steps: int = _MOST_STEPS) -> Iterator[str]:
        """Yields the full names of the classes that `owner` derives from, as far as seen."""
        for base in owner.bases:
            binding = self.lookup(base.id, base) if isinstance(base, ast.Name) else None
            if binding is not None and isinstance(binding.node, ast.ClassDef) and steps:
                yield from self.bases(binding.node, steps - 1)
            elif name := self.full_name(base):
                yield name

    def local_class(self, node: ast.AST) -> ast.ClassDef | None:
        """Returns the class of this script that `node` stands for."""
        binding = self.lookup(node.id, node) if isinstance(node, ast.Name) else None
        return binding.node if binding and isinstance(binding.node, ast.ClassDef) else None


def dotted(node: ast.AST) -> str | None:
    """Returns `node` as text if it is a name or an attribute of one, such as `"self.model"`."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None


@functools.lru_cache(maxsize=4096)
def canonical(name: str) -> str:
    """Returns the one spelling that the rules use for the full name `name`."""
    for prefix, same in _SAME:
        if name == prefix or name.startswith(f"{prefix}."):
            name = same + name[len(prefix) :]
    return name
