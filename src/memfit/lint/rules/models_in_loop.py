"""Family MF3, models: models, optimizers and compilations that a loop makes again."""

import ast
from collections.abc import Iterator

from memfit.lint.rules.rule import Match, Rule
from memfit.lint.script.constants import text
from memfit.lint.script.containers import Addition
from memfit.lint.script.names import dotted
from memfit.lint.script.repetition import Repeat
from memfit.lint.script.script import Script, shown

_REGISTRY_URL = "https://github.com/keras-team/keras/issues/20552"
MODEL_IN_LOOP = Rule(
    "MF303",
    "model-in-loop",
    "accumulating-models",
    "A model created and trained at every pass leaves its graphs behind on TensorFlow, and waits "
    "for the collector on JAX and torch.",
    _REGISTRY_URL,
)
COMPILE_IN_LOOP = Rule(
    "MF304",
    "compile-in-loop",
    "accumulating-functions",
    "A model compiled again at every pass is traced again, and TensorFlow keeps the old graphs.",
    _REGISTRY_URL,
)
OPTIMIZER_IN_LOOP = Rule(
    "MF305",
    "optimizer-in-loop",
    "accumulating-optimizers",
    "An optimizer created at every pass has its own slots for every weight, and loses its state.",
)
RULES = (MODEL_IN_LOOP, COMPILE_IN_LOOP, OPTIMIZER_IN_LOOP)

_RELEASING = {"memfit.session", "keras.utils.clear_session", "memfit.isolated"}
_TRAINING = {"compile", "train_on_batch"}


def check(script: Script) -> Iterator[Match]:
    """Yields what loops of `script` make again at every pass."""
    for call in script.tree.calls:
        if isinstance(call.func, ast.Attribute) and call.func.attr == "compile":
            yield from _compile_in_loop(script, call)
        elif _is_keras_model(script, call):
            yield from _model_in_loop(script, call)
        elif script.kinds.of(call) in ("optimizer", "torch optimizer"):
            yield from _optimizer_in_loop(script, call)


def _is_keras_model(script: Script, call: ast.Call) -> bool:
    """Whether `call` makes a model of Keras: by what it is, or `build_model` of another file."""
    kind = script.kinds.of(call)
    is_open = kind is None and script.names.uses_keras
    return (kind == "model" or is_open) and script.training.is_building(call)


def _model_in_loop(script: Script, call: ast.Call) -> Iterator[Match]:
    repeat = script.repeats.of(call)
    if repeat is None or script.repeats.is_guarded(call, repeat) or _releases(script, call, repeat):
        return
    if not _is_trained(script, call) or _is_wanted(script, call):
        return
    yield Match(
        MODEL_IN_LOOP,
        call,
        f"{shown(call)} creates another model {repeat.each}, and TensorFlow keeps the graphs of "
        "all of them",
        f"put the body of {repeat.label} into with memfit.session(): its end releases all",
    )


def _is_trained(script: Script, call: ast.Call) -> bool:
    """Whether the model that `call` makes is compiled or fitted where it is made."""
    parent = script.tree.parent(call)
    if isinstance(parent, ast.Attribute):
        return parent.attr in (*_TRAINING, "fit")
    name = _assigned_name(script, call)
    scope = script.tree.scope(call)
    if name is None:
        return False
    methods = [
        other
        for other in script.tree.within(scope, ast.Call)
        if isinstance(other.func, ast.Attribute) and dotted(other.func.value) == name
    ]
    return any(_trains(script, method) for method in methods) or _is_updated(script, name, call)


def _trains(script: Script, call: ast.Call) -> bool:
    is_known = isinstance(call.func, ast.Attribute) and call.func.attr in _TRAINING
    return is_known or script.kinds.is_fit(call)


def _is_updated(script: Script, name: str, call: ast.Call) -> bool:
    """Whether a step by hand changes the weights of the model called `name`."""
    loops = script.tree.loops(call)
    return any(
        script.training.is_update(other) and f"{name}.trainable" in ast.unparse(other)
        for loop in loops[:1]
        for other in script.tree.within(loop, ast.Call)
    )


def _assigned_name(script: Script, call: ast.Call) -> str | None:
    parent = script.tree.parent(call)
    if isinstance(parent, ast.Assign) and parent.value is call and len(parent.targets) == 1:
        return dotted(parent.targets[0])
    return None


def _is_wanted(script: Script, call: ast.Call) -> bool:
    """Whether the model is returned, or kept in a container that is read, as for an ensemble."""
    name = _assigned_name(script, call)
    scope = script.tree.scope(call)
    returned = [] if isinstance(scope, ast.Module) else script.tree.within(scope, ast.Return)
    is_returned = any(
        dotted(part) == name
        for one in returned
        if one.value is not None
        for part in (one.value.elts if isinstance(one.value, ast.Tuple) else [one.value])
    )
    return is_returned or any(script.keeps.is_read(keep) for keep in _keeps_of(script, call))


def _keeps_of(script: Script, call: ast.Call) -> list[Addition]:
    """Returns what puts the object that `call` makes into a container."""
    name, scope = _assigned_name(script, call), script.tree.scope(call)
    return [
        keep
        for keep in script.keeps.all
        if keep.value is call
        or (
            name is not None
            and dotted(keep.value) == name
            and script.tree.scope(keep.node) is scope
        )
    ]


def _releases(script: Script, node: ast.AST, repeat: Repeat) -> bool:
    """Whether each pass releases what it made, as far as that can be seen."""
    roots = [repeat.node]
    if function := script.tree.function(node):
        roots.append(function)
    calls = [call for root in roots for call in script.tree.within(root, ast.Call)]
    names = {script.names.called(call) for call in calls}
    return bool(names & _RELEASING) or ("gc.collect" in names and _backend(script) != "tensorflow")


def _backend(script: Script) -> str:
    """Returns the backend that the script asks Keras for; TensorFlow if it asks for none."""
    for node in script.tree.within(script.tree.module, ast.Assign):
        match node.targets:
            case [ast.Subscript(slice=ast.Constant(value="KERAS_BACKEND"))]:
                return text(script.names, node.value) or "tensorflow"
    return "tensorflow"


def _compile_in_loop(script: Script, call: ast.Call) -> Iterator[Match]:
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    if not script.kinds.is_model(receiver) or script.names.full_name(receiver) is not None:
        return
    repeat = script.repeats.loop(call) or script.repeats.hook(call)
    if repeat is None or script.repeats.is_guarded(call, repeat) or _releases(script, call, repeat):
        return
    key = dotted(receiver)
    binding = script.names.lookup(key, receiver) if key else None
    if key is None or (binding and script.tree.is_within(binding.node, repeat.node)):
        return  # the model is another one at every pass
    yield Match(
        COMPILE_IN_LOOP,
        call,
        f"{key}.compile(...) makes {key} trace again {repeat.each}, and TensorFlow keeps the old "
        "graphs",
        f"compile {key} once, outside {repeat.label}; for another learning rate: "
        f"{key}.optimizer.learning_rate = ...",
    )


def _optimizer_in_loop(script: Script, call: ast.Call) -> Iterator[Match]:
    repeat = script.repeats.of(call)
    if repeat is None or script.repeats.is_guarded(call, repeat) or _releases(script, call, repeat):
        return
    if script.training.builds_model(repeat.node) or _is_argument(script, call):
        return
    if not script.training.trains(repeat.node) or _is_of_another(script, call, repeat):
        return
    if script.kinds.of(call) == "torch optimizer" and not _keeps_of(script, call):
        return  # torch frees it as soon as the name stands for the next one
    yield Match(
        OPTIMIZER_IN_LOOP,
        call,
        f"{shown(call)} creates another optimizer {repeat.each}, with slots for every weight",
        f"create it once, outside {repeat.label}, and set its learning rate where that changes",
    )


def _is_of_another(script: Script, call: ast.Call, repeat: Repeat) -> bool:
    """Whether the optimizer is for weights that each pass replaces: one for each model."""
    names = [name for part in call.args for name in ast.walk(part) if isinstance(name, ast.Name)]
    bindings = [script.names.lookup(name.id, name) for name in names]
    return script.kinds.of(call) == "torch optimizer" and any(
        one is not None and script.tree.is_within(one.node, repeat.node) for one in bindings
    )


def _is_argument(script: Script, call: ast.Call) -> bool:
    """Whether `call` is an argument of another call, which is then checked instead."""
    parent = script.tree.parent(call)
    return isinstance(parent, ast.keyword | ast.Call | ast.List | ast.Dict)
