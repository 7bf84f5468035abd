"""What an expression gives: a model, a tensor, a tensor with its graph, a history, ..."""

import ast
import re
from collections.abc import Callable, Hashable

from memfit.fixes.guess_kind import RELEASING_METHODS
from memfit.lint.script.bindings import Binding
from memfit.lint.script.compiled_functions import CompiledFunctions
from memfit.lint.script.gradient_variables import GradientVariables
from memfit.lint.script.names import Names, dotted
from memfit.lint.script.tree import Function
from memfit.lint.script.vocabulary import (
    BUILDING,
    KIND_OF_CLASS,
    TENSORS,
    kind_of_call,
)

_MOST_STEPS = 40
# What users call a model that they get as an argument.
_MODEL_NAMES = re.compile(
    rf"(^|\.)(?!({'|'.join(BUILDING)})_)(\w+_)?(model|net|network|discriminator|autoencoder)$"
)
_FIT_KEYWORDS = {
    *("epochs", "validation_data", "validation_split", "steps_per_epoch", "initial_epoch"),
    *("validation_steps", "workers"),
}
_SAME_OBJECT = {"to", "cuda", "cpu", "train", "eval", "float", "double", "half"}
_FITTING = {"fit", "fit_generator"}
_SAME_KIND = {"copy.copy", "copy.deepcopy"}


class ExpressionKinds:
    """What the expressions of a script give.

    Args:
        names: The names of the script.
        compilations: Its compiled functions.
    """

    def __init__(self, names: Names, compilations: CompiledFunctions) -> None:
        self.names = names
        self.tree = names.tree
        self.compilations = compilations
        self.differentiated = GradientVariables(names)
        self._known: dict[Hashable, str | None] = {}
        self._asked: set[Hashable] = set()  # being worked out: a loop may lead back to them

    def of(self, node: ast.AST | None) -> str | None:
        """Returns the kind of what `node` gives, or `None` if it is not known."""
        return None if node is None else self._answer(node, lambda: self._work_out(node))

    def _answer(self, what: Hashable, work_out: Callable[[], str | None]) -> str | None:
        if what in self._asked or len(self._asked) > _MOST_STEPS:
            return None
        if what not in self._known:
            self._asked.add(what)
            self._known[what] = work_out()
            self._asked.remove(what)
        return self._known[what]

    def _work_out(self, node: ast.AST) -> str | None:
        match node:
            case ast.Call():
                return self._of_call(node)
            case ast.Name() | ast.Attribute():
                return self._of_variable(node)
            case ast.BinOp():
                return self._of_parts((node.left, node.right))
            case ast.IfExp():
                return self._of_parts((node.body, node.orelse))
            case ast.UnaryOp(operand=inner) | ast.Subscript(value=inner) | ast.Await(value=inner):
                kind = self.of(inner)
                return kind if kind in TENSORS or kind == "gradients" else None
        return None

    def _of_parts(self, parts: tuple[ast.expr, ...]) -> str | None:
        kinds = [self.of(part) for part in parts]
        for kind in ("graph", "tensor", "prediction", "model"):
            if kind in kinds:
                return "tensor" if kind == "prediction" else kind
        return None

    def _of_variable(self, node: ast.Name | ast.Attribute) -> str | None:
        key = dotted(node)
        binding = self.names.lookup(key, node) if key else None
        if key is None or binding is None:
            return "model" if key == "self.model" and self._in_callback(node) else None
        return self.of_binding(binding)

    def of_binding(self, binding: Binding) -> str | None:
        """Returns the kind of the value that `binding` gives to its name."""
        return self._answer(binding, lambda: self._of_binding(binding))

    def _of_binding(self, binding: Binding) -> str | None:
        if binding in self.differentiated.with_graph:
            return "graph"
        if binding in self.differentiated.losses:
            return "tensor"
        match binding.how:
            case "parameter":
                return self._of_parameter(binding)
            case "augment":
                before = self.names.lookup(binding.key, binding.node)
                return (self.of_binding(before) if before else None) or self.of(binding.value)
            case "assign" | "with" if binding.value is not None:
                return self._of_element(binding.value, binding.path)
        return None

    def _of_parameter(self, binding: Binding) -> str | None:
        owner = self.tree.class_of(binding.node)
        function = self.tree.parent(self.tree.parent(binding.node) or binding.node)
        if owner is None or not isinstance(function, ast.FunctionDef) or binding.key == "self":
            return None
        bases = set(self.names.bases(owner))
        is_tensor = ("keras.Metric" in bases and function.name == "update_state") or (
            bases & {"keras.Layer", "keras.Model"} and function.name == "call"
        )
        return "tensor" if is_tensor else None

    def _of_element(self, value: ast.expr, path: tuple[int, ...]) -> str | None:
        """Returns the kind of one element of `value`, as in `loss, outputs = step(x)`."""
        if not path:
            return self.of(value)
        if isinstance(value, ast.Tuple) and path[0] < len(value.elts):
            return self._of_element(value.elts[path[0]], path[1:])
        if isinstance(value, ast.Call) and (function := self.names.function(value.func)):
            if self.compilations.of_function(function):
                return "tensor"
            return self._answer((function, path), lambda: self._of_returned(function, path))
        kind = self.of(value)
        return kind if kind in TENSORS or kind == "gradients" else None

    def _of_returned(self, function: Function, path: tuple[int, ...]) -> str | None:
        kinds = [self._of_element(one, path) for one in self.returned(function)]
        return kinds[-1] if kinds else None

    def returned(self, function: Function) -> list[ast.expr]:
        """Returns the expressions that `function` may return."""
        if isinstance(function, ast.Lambda):
            return [function.body]
        returns = self.tree.within(function, ast.Return)
        return [one.value for one in returns if one.value and self.tree.function(one) is function]

    def _of_call(self, call: ast.Call) -> str | None:
        name = self.names.called(call)
        if name in _SAME_KIND and call.args:
            return self._of_copy(call.args[0])
        if name is not None and (kind := kind_of_call(name)):
            return kind
        if owner := self.names.local_class(call.func):
            bases = self.names.bases(owner)
            return next((KIND_OF_CLASS[one] for one in bases if one in KIND_OF_CLASS), None)
        if self.compilations.called(call.func):
            return "tensor"
        if function := self.names.function(call.func):
            kinds = [self.of(one) for one in self.returned(function)]
            return next((kind for kind in kinds if kind), None)
        return self._of_callable(call)

    def _of_copy(self, node: ast.expr) -> str | None:
        match node:
            case ast.Call(func=ast.Attribute(attr="state_dict")):
                return "weights"  # without the copy they are the model's own
        return self.of(node)

    def _of_callable(self, call: ast.Call) -> str | None:
        kind = self.of(call.func)
        if kind in ("gradient function", "loss function", "layer", "module"):
            return "tensor"
        is_called = any(one.arg == "training" for one in call.keywords)
        if self.is_model(call.func, kind) or (is_called and self.names.called(call) is None):
            return "prediction"
        if isinstance(call.func, ast.Attribute):
            return self._of_method(call, call.func)
        return None

    def _of_method(self, call: ast.Call, method: ast.Attribute) -> str | None:
        receiver = self.of(method.value)
        if self.is_fit(call):
            return "history"
        if (receiver, method.attr) == ("tape", "gradient"):
            return "gradients"
        match method.attr:
            case "get_weights":
                return "weights"
            case "predict" | "predict_on_batch" if self.is_model(method.value, receiver):
                return "outputs"
        is_same = receiver in ("module", "model") and method.attr in _SAME_OBJECT
        is_result = receiver in TENSORS and method.attr not in RELEASING_METHODS
        return receiver if is_same or is_result else None

    def is_model(self, node: ast.expr, kind: str | None = None) -> bool:
        """Whether `node` is a Keras model, or an argument that is called like one."""
        kind = kind or self.of(node)
        if kind is not None:
            return kind == "model"
        key = dotted(node)
        binding = self.names.lookup(key, node) if key else None
        is_open = binding is None or binding.how == "parameter" or binding.value is not None
        if key is None or not is_open or not _MODEL_NAMES.search(key):
            return False
        return binding is None or self._is_unknown(binding)

    def _is_unknown(self, binding: Binding) -> bool:
        """Whether the origin of a value is unknown: not even another library."""
        if isinstance(binding.value, ast.Call):
            name = self.names.called(binding.value)
            return name is None or not name.startswith(("sklearn.", "xgboost.", "lightgbm."))
        return binding.how == "parameter" or isinstance(binding.value, ast.Name)

    def is_fit(self, call: ast.Call) -> bool:
        """Whether `call` is a training by Keras: `fit` of a model, not of a scikit-learn one."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in _FITTING:
            return False
        kind = self.of(call.func.value)
        if kind is not None:
            return kind == "model"
        return bool(_FIT_KEYWORDS & {keyword.arg for keyword in call.keywords}) or (
            self.is_model(call.func.value) and self.names.uses_keras
        )

    def _in_callback(self, node: ast.AST) -> bool:
        owner = self.tree.class_of(node)
        bases = list(self.names.bases(owner)) if owner else []
        return any(base.endswith("Callback") for base in bases)

    def contains(self, node: ast.expr, kinds: set[str]) -> ast.expr | None:
        """Returns the part of `node` that is one of `kinds`: itself, or an element of a tuple."""
        match node:
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
                pass
            case _:
                parts = [node]
        return next((part for part in parts if self.of(part) in kinds), None)
