"""Which loops and functions train a model, and which only use one or build one."""

import ast
from collections.abc import Iterator

from memfit.lint.script.expression_kinds import ExpressionKinds
from memfit.lint.script.names import dotted
from memfit.lint.script.tree import Function, Loop
from memfit.lint.script.vocabulary import BUILDING

_TRAINING = {"apply_gradients", "backward", "train_on_batch", "minimize"}
_MOST_STEPS = 5
# What users count when each pass is its own training.
_TRAININGS = ("fold", "seed", "trial", "experiment", "config", "param", "run")


class TrainingLoops:
    """Which parts of a script train.

    Args:
        kinds: What its expressions give.
    """

    def __init__(self, kinds: ExpressionKinds) -> None:
        self.kinds = kinds
        self.names = kinds.names
        self.tree = kinds.tree

    def trains(self, root: ast.AST) -> bool:
        """Whether `root` runs a training step, in place or in a function that it calls."""
        return any(self.is_step(call) or self.kinds.is_fit(call) for call in self.calls(root))

    def calls(self, root: ast.AST) -> Iterator[ast.Call]:
        """Yields the calls in `root` and in the functions of the script that they call."""
        waiting, seen = [root], set[ast.AST]()
        while waiting:
            for call in self.tree.within(waiting.pop(), ast.Call):
                yield call
                function = self.names.function(call.func)
                if function is not None and function not in seen:
                    seen.add(function)
                    waiting.append(function)

    def is_step(self, call: ast.Call) -> bool:
        """Whether `call` changes weights or computes what will change them."""
        compilation = self.kinds.compilations.called(call.func)
        subject = compilation.subject if compilation is not None else call.func
        if self.kinds.of(subject) == "gradient function":
            return True
        if not isinstance(call.func, ast.Attribute):
            return False
        if call.func.attr == "gradient":
            return self.kinds.of(call.func.value) == "tape"
        return call.func.attr in _TRAINING or self.is_update(call)

    def is_update(self, call: ast.Call) -> bool:
        """Whether `call` lets an optimizer change weights."""
        match call.func:
            case ast.Attribute(attr="apply_gradients"):
                return True
            case ast.Attribute(attr="step" | "apply" | "update", value=receiver):
                return self.is_optimizer(receiver) or any(map(self.is_optimizer, call.args[:1]))
        return False

    def is_optimizer(self, node: ast.expr) -> bool:
        """Whether `node` is an optimizer, by what made it or by its name."""
        kind = self.kinds.of(node)
        if kind is not None:
            return kind in ("optimizer", "torch optimizer")
        last = (dotted(node) or "").rpartition(".")[2].lower()
        return last == "opt" or "optim" in last or last.endswith("_opt")

    def builds_model(self, root: ast.AST) -> bool:
        """Whether `root` makes a model: by Keras, or by a function that is named so."""
        return any(self.is_building(call) for call in self.calls(root))

    def _takes_model(self, loop: Loop) -> bool:
        """Whether each pass gets a model from somewhere, under a name that models have."""
        return any(
            isinstance(node.value, ast.Call) and self.kinds.is_model(target)
            for node in self.tree.within(loop, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        )

    def is_building(self, call: ast.Call, steps: int = _MOST_STEPS) -> bool:
        """Whether `call` makes a model, rather than giving back one that is there."""
        function = self.names.function(call.func)
        if function is not None:
            returned = self.kinds.returned(function)
            return steps > 0 and any(self._is_new(one, function, steps - 1) for one in returned)
        if self.kinds.of(call) in ("model", "module"):
            is_class = self.names.local_class(call.func) is not None
            return is_class or self.names.called(call) is not None
        name = ast.unparse(call.func).rpartition(".")[2]
        return name.endswith("Model") or (
            name.endswith("model") and name.lstrip("_").startswith(BUILDING)
        )

    def _is_new(self, node: ast.expr, function: Function, steps: int) -> bool:
        """Whether what `function` returns as `node` is a model that it has made."""
        if isinstance(node, ast.Name):
            binding = self.names.lookup(node.id, node)
            is_own = binding is not None and self.tree.function(binding.node) is function
            node = binding.value if binding and is_own and binding.value else node
        return isinstance(node, ast.Call) and self.is_building(node, steps)

    def is_epoch_loop(self, loop: Loop) -> bool:
        """Whether each pass of `loop` is an epoch or a step of one and the same training."""
        if self.builds_model(loop) or self._takes_model(loop) or _counts(loop, *_TRAININGS):
            return False
        return _counts(loop, "epoch") or self.trains(loop)


def _counts(loop: Loop, *words: str) -> bool:
    """Whether `loop` reads `for word in ...`; `for words in (10, 20)` is another thing."""
    if isinstance(loop, ast.While):
        return False
    counters = [name.id.lower() for name in ast.walk(loop.target) if isinstance(name, ast.Name)]
    return any(
        word in counter and f"{word}s" not in counter for word in words for counter in counters
    )
