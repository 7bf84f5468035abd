"""What runs again and again: loops, hooks that `fit` calls, functions called in a loop."""

import ast
from dataclasses import dataclass

from memfit.lint.script.constants import number
from memfit.lint.script.names import Names
from memfit.lint.script.tree import COMPREHENSIONS, FUNCTIONS, Function, Loop

# A handful of passes is not growth.
_FEW_ELEMENTS = 4
_FEW_PASSES = 2
# Methods that Keras calls again and again, by the last part of the name of a base class.
_HOOKS = {
    "Callback": {
        *("on_epoch_begin", "on_epoch_end", "on_batch_begin", "on_batch_end"),
        *("on_train_batch_begin", "on_train_batch_end", "on_test_batch_begin"),
        *("on_test_batch_end", "on_test_begin", "on_test_end"),
        *("on_predict_batch_begin", "on_predict_batch_end"),
    },
    "Metric": {"update_state"},
    "Layer": {"call"},
    "Model": {"call", "train_step", "test_step"},
    "PyDataset": {"__getitem__", "on_epoch_end"},
}
# Studies of Optuna and Hyperopt call what they are given once a trial.
_TRIALS = {"n_trials", "max_evals"}


@dataclass(frozen=True, slots=True)
class Repeat:
    """Why code runs again and again.

    Attributes:
        node: The loop, or the function that is a hook.
        label: Words for it, such as `"the loop of line 12"`.
    """

    node: ast.AST
    label: str

    @property
    def each(self) -> str:
        """Words for when it runs, such as `"at every pass of the loop of line 12"`."""
        is_function = isinstance(self.node, FUNCTIONS)
        return f"at every {'call' if is_function else 'pass'} of {self.label}"


class Repetition:
    """What runs again and again in a script.

    Args:
        names: The names of the script.
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self.tree = names.tree
        self._calls: dict[Function, list[ast.Call]] = {}
        self._hooks: set[Function] = set()
        for call in self.tree.calls:
            self._note(call)

    def _note(self, call: ast.Call) -> None:
        if function := self.names.function(call.func):
            self._calls.setdefault(function, []).append(call)
        given = [keyword.value for keyword in call.keywords if keyword.arg in _HOOKS["Callback"]]
        if any(keyword.arg in _TRIALS for keyword in call.keywords):
            given += [*call.args, *(keyword.value for keyword in call.keywords)]
        hooks = (self.names.function(node) for node in given)
        self._hooks.update(hook for hook in hooks if hook is not None)

    def calls(self, function: Function) -> list[ast.Call]:
        """Returns the calls of `function` that the script shows."""
        return self._calls.get(function, [])

    def loop(self, node: ast.AST) -> Repeat | None:
        """Returns the innermost loop around `node` in its own function, if it runs often."""
        for loop in self.loops(node):
            return Repeat(loop, f"the loop of line {loop.lineno}")
        return None

    def _comprehension(self, node: ast.AST) -> Repeat | None:
        for parent, child in self.tree.ancestors(node):
            if isinstance(parent, FUNCTIONS):
                return None
            if isinstance(parent, COMPREHENSIONS) and not isinstance(child, ast.comprehension):
                few = any(self._is_few(one.iter) for one in parent.generators)
                return None if few else Repeat(parent, f"the list of line {parent.lineno}")
        return None

    def loops(self, node: ast.AST) -> list[Loop]:
        """Returns the loops around `node` in its own function that run often, innermost first."""
        return [loop for loop in self.tree.loops(node) if not self._is_short(loop)]

    def hook(self, node: ast.AST) -> Repeat | None:
        """Returns the hook that `node` is in, if Keras calls it again and again."""
        function = self.tree.function(node)
        while function is not None:
            if self.is_hook(function):
                name = getattr(function, "name", "the hook")
                return Repeat(function, name)
            function = self.tree.function(function)
        return None

    def is_hook(self, function: Function) -> bool:
        """Whether Keras calls `function` again and again."""
        if function in self._hooks:
            return True
        owner = self.tree.parent(function)
        if not isinstance(owner, ast.ClassDef) or isinstance(function, ast.Lambda):
            return False
        parts = [base.rpartition(".")[2] for base in self.names.bases(owner)]
        return any(
            part.endswith(kind) and function.name in hooks
            for part in parts
            for kind, hooks in _HOOKS.items()
        )

    def of(self, node: ast.AST, seen: frozenset[Function] = frozenset()) -> Repeat | None:
        """Returns why `node` runs again and again, followed through calls, or `None`."""
        if found := self.loop(node) or self.hook(node) or self._comprehension(node):
            return found
        function = self.tree.function(node)
        if function is None or function in seen:
            return None
        for call in self.calls(function):
            if found := self.of(call, seen | {function}):
                return found
        return None

    def is_guarded(self, node: ast.AST, repeat: Repeat) -> bool:
        """Whether an `if` lets `node` run only once, as in `if step is None:`."""
        for parent, child in self.tree.ancestors(node):
            if parent is repeat.node:
                return False
            if isinstance(parent, ast.If) and child in parent.body and _is_once(parent.test):
                return True
        return False

    def _is_short(self, loop: Loop) -> bool:
        if isinstance(loop.body[-1], ast.Break | ast.Return):
            return True
        return isinstance(loop, ast.For) and self._is_few(loop.iter)

    def _is_few(self, node: ast.expr) -> bool:
        match node:
            case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
                return len(elements) <= _FEW_ELEMENTS
            case ast.Call(func=ast.Attribute(attr="take"), args=[count]):
                most = number(self.names, count)
                return most is not None and 0 <= most <= _FEW_ELEMENTS
            case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int() as count)]):
                return count <= _FEW_PASSES
            case ast.Call(func=ast.Name(id="enumerate" | "zip" | "iter" | "tqdm"), args=parts):
                return any(self._is_few(part) for part in parts)
        return False


def _is_once(test: ast.expr) -> bool:
    match test:
        case ast.Compare(ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant()]):
            return not _has_remainder(test)
        case ast.Compare(ops=[ast.NotIn()]):
            return True
        case ast.Name(id=name):
            return "first" in name.lower()
        case ast.UnaryOp(op=ast.Not()):
            return not _has_remainder(test)
        case ast.BoolOp(op=ast.And(), values=values):
            return any(_is_once(value) for value in values)
    return False


def _has_remainder(test: ast.expr) -> bool:
    return any(
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) for node in ast.walk(test)
    )
