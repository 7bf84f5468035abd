"""Family MF3, functions: compiled functions that a loop makes again."""

import ast
from collections.abc import Iterator

from memfit.lint.rules.rule import Match, Rule
from memfit.lint.script.compiled_functions import CompiledFunction
from memfit.lint.script.repetition import Repeat
from memfit.lint.script.script import Script, shown
from memfit.lint.script.tree import FUNCTIONS

FUNCTION_IN_LOOP = Rule(
    "MF301",
    "function-in-loop",
    "accumulating-functions",
    "A function compiled in a loop is traced again at every pass, and each trace takes memory.",
)
RULES = (FUNCTION_IN_LOOP,)

_MODELS = ("model", "module", "optimizer", "torch optimizer")


def check(script: Script) -> Iterator[Match]:
    """Yields the compiled functions of `script` that a loop makes again."""
    for compilation in script.compilations.all:
        yield from _function_in_loop(script, compilation)
        yield from _factory_in_loop(script, compilation)


def _function_in_loop(script: Script, compilation: CompiledFunction) -> Iterator[Match]:
    place = _place(compilation)
    repeat = script.repeats.loop(place) or script.repeats.hook(place)
    if repeat is None or script.repeats.is_guarded(place, repeat):
        return
    if _is_new(script, compilation, repeat.node) and not _is_for_new_model(
        script, compilation, repeat.node
    ):
        yield _match(compilation, compilation.node, repeat)


def _factory_in_loop(script: Script, compilation: CompiledFunction) -> Iterator[Match]:
    """Sees a loop that calls a function which compiles another one each time."""
    place = _place(compilation)
    factory = script.tree.function(place)
    if factory is None or script.repeats.loop(place) or not _is_new(script, compilation, factory):
        return
    if _is_for_new_model(script, compilation, factory) or _is_memoised(script, place):
        return
    for call in script.repeats.calls(factory):
        repeat = script.repeats.loop(call) or script.repeats.hook(call)
        if repeat is None or script.repeats.is_guarded(call, repeat):
            continue
        if not any(_is_another(script, part, repeat) for part in _arguments(call)):
            yield _match(compilation, call, repeat)


def _match(compilation: CompiledFunction, node: ast.AST, repeat: Repeat) -> Match:
    name = getattr(compilation.subject, "name", None) or shown(compilation.subject)
    maker = compilation.compiler if node is compilation.node else shown(node)
    return Match(
        FUNCTION_IN_LOOP,
        node,
        f"{maker} creates a new function of {name} {repeat.each}, and each is traced again",
        f"compile {name} once, outside {repeat.label}, and pass what changes as tensors",
    )


def _place(compilation: CompiledFunction) -> ast.AST:
    """Returns where the compiling is done: a decorator runs where its function is defined."""
    subject = compilation.subject
    return subject if isinstance(subject, ast.FunctionDef) else compilation.node


def _is_new(script: Script, compilation: CompiledFunction, root: ast.AST) -> bool:
    """Whether each pass compiles another function: JAX and torch cache those they have compiled."""
    subject = compilation.subject
    function = script.names.function(subject)
    if function is not None and function is not root:
        is_inside = script.tree.is_within(function, root)
        return is_inside or compilation.compiler == "tf.function"
    return compilation.compiler == "tf.function" or isinstance(subject, ast.Call)


def _is_for_new_model(script: Script, compilation: CompiledFunction, root: ast.AST) -> bool:
    """Whether the function is of a model that the same pass makes: then the model is what grows."""
    subject = script.names.function(compilation.subject) or compilation.subject
    for name in ast.walk(subject):
        if not isinstance(name, ast.Name):
            continue
        binding = script.names.lookup(name.id, name)
        if binding is None or not script.tree.is_within(binding.node, root):
            continue
        if script.kinds.of_binding(binding) in _MODELS:
            return True
    return False


def _is_memoised(script: Script, place: ast.AST) -> bool:
    """Whether an `if` before it keeps a factory from compiling the same again."""
    return any(
        isinstance(parent, ast.If) and not isinstance(child, FUNCTIONS)
        for parent, child in script.tree.ancestors(place)
    )


def _arguments(call: ast.Call) -> list[ast.expr]:
    """Returns what `call` passes, with the object that a method is called on."""
    receiver = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    return [*receiver, *call.args, *(keyword.value for keyword in call.keywords)]


def _is_another(script: Script, node: ast.expr, repeat: Repeat) -> bool:
    """Whether `node` is another object at every pass, and not just a counter."""
    for name in ast.walk(node):
        binding = script.names.lookup(name.id, name) if isinstance(name, ast.Name) else None
        if binding is not None and script.tree.is_within(binding.node, repeat.node):
            value = binding.value
            is_counter = isinstance(value, ast.Call) and ast.unparse(value.func) == "range"
            if not is_counter:
                return True
    return False
