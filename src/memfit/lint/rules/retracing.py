"""Family MF3, arguments: Python values for which a compiled function is traced again."""

import ast
from collections.abc import Iterator

from memfit.lint.rules.rule import Match, Rule
from memfit.lint.script.bindings import Binding, parameters
from memfit.lint.script.compiled_functions import CompiledFunction
from memfit.lint.script.script import Script, shown
from memfit.lint.script.tree import Loop

PYTHON_VALUE = Rule(
    "MF302",
    "python-value-argument",
    "retracing",
    "A compiled function is traced again for every new Python number or lambda that it gets; a "
    "tensor is traced once.",
)
RULES = (PYTHON_VALUE,)

_MOST_STEPS = 6


def check(script: Script) -> Iterator[Match]:
    """Yields the Python values that `script` gives to compiled functions in a loop."""
    for call in script.tree.calls:
        yield from _python_value(script, call)


def _python_value(script: Script, call: ast.Call) -> Iterator[Match]:
    loops = script.repeats.loops(call)
    compilation = script.compilations.called(call.func) if loops else None
    if compilation is None or script.compilations.is_compiled(call):
        return
    for argument in _traced_by_value(script, call, compilation):
        if _changes(script, argument, loops):
            what = "function" if isinstance(argument, ast.Lambda) else "number"
            yield Match(
                PYTHON_VALUE,
                argument,
                f"{shown(call.func)} is traced again for every value of {shown(argument)}, a "
                f"Python {what} that changes in the loop of line {loops[0].lineno}",
                _fix(argument, compilation, loops[0]),
            )


def _fix(argument: ast.expr, compilation: CompiledFunction, loop: Loop) -> str:
    if isinstance(argument, ast.Lambda):
        return f"define it once, outside the loop of line {loop.lineno}, and pass what changes"
    if compilation.compiler == "tf.function":
        return f"{shown(argument)} -> tf.constant({shown(argument)})"
    return f"pass {shown(argument)} as an argument of {compilation.compiler} that is not static"


def _traced_by_value(
    script: Script, call: ast.Call, compilation: CompiledFunction
) -> Iterator[ast.expr]:
    """Yields the arguments of `call` whose values, not only their types, make a trace."""
    if compilation.compiler == "tf.function":
        if "input_signature" not in compilation.option_names:
            yield from call.args
            yield from (keyword.value for keyword in call.keywords)
        return
    static = _static(compilation)
    function = script.names.function(compilation.subject)
    known = parameters(function) if function is not None else []
    for index, argument in enumerate(call.args):
        if index in static or (index < len(known) and known[index] in static):
            yield argument
    yield from (keyword.value for keyword in call.keywords if keyword.arg in static)


def _static(compilation: CompiledFunction) -> set[object]:
    """Returns the numbers and names of the arguments that `jax.jit` treats as static."""
    return {
        node.value
        for option in compilation.options
        if option.arg in ("static_argnums", "static_argnames")
        for node in ast.walk(option.value)
        if isinstance(node, ast.Constant)
    }


def _changes(script: Script, node: ast.expr, loops: list[Loop], steps: int = _MOST_STEPS) -> bool:
    """Whether `node` is a Python value that differs from pass to pass."""
    match node:
        case ast.Lambda():
            return True  # each is another object, whatever it does
        case ast.Name() if steps:
            binding = script.names.lookup(node.id, node)
            return binding is not None and _is_changed(script, binding, loops, steps)
    parts = _parts(script, node)
    return all(_is_number(script, part, steps) for part in parts) and any(
        _changes(script, part, loops, steps) for part in parts
    )


def _parts(script: Script, node: ast.expr | None) -> list[ast.expr]:
    """Returns the numbers that the number `node` is computed of."""
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.Call(args=[_, *_]) if _is_arithmetic(script, node):
            return node.args
    return []


def _is_arithmetic(script: Script, call: ast.Call) -> bool:
    name = script.names.called(call) or ""
    return name in ("float", "int", "round", "abs", "min", "max", "pow") or (
        name.startswith("math.")
    )


def _is_changed(script: Script, binding: Binding, loops: list[Loop], steps: int) -> bool:
    """Whether what a name stands for is a number that a loop changes."""
    if binding.how == "for":
        return binding.node in loops and _counts(script, binding)
    value = binding.value
    if binding.how not in ("assign", "augment") or binding.path or value is None:
        return False
    changing = [
        one
        for one in script.names.bindings(binding.key, binding.node)
        if any(script.tree.is_within(one.node, loop) for loop in loops)
    ]
    if any(_is_counter(one) and _is_number(script, one.value, steps - 1) for one in changing):
        return binding.how == "augment" or _is_number(script, value, steps - 1)
    return binding in changing and _changes(script, value, loops, steps - 1)


def _is_counter(binding: Binding) -> bool:
    """Whether `binding` makes the next value of its last one: `n += 1`, `rate = rate * 0.9`."""
    parts = ast.walk(binding.value) if binding.value is not None else ()
    return binding.how == "augment" or (
        binding.how == "assign"
        and any(isinstance(part, ast.Name) and part.id == binding.key for part in parts)
    )


def _counts(script: Script, binding: Binding) -> bool:
    match binding.value:
        case ast.Call(func=function):
            name = script.names.full_name(function)
            if name in ("range", "itertools.count", "tqdm.trange", "trange"):
                return not binding.path
            return name == "enumerate" and binding.path == (0,)
    return False


def _is_number(script: Script, node: ast.expr | None, steps: int) -> bool:
    """Whether `node` is a Python number, as far as one can see."""
    match node:
        case ast.Constant(value=int() | float()) | ast.Call(func=ast.Name(id="len")):
            return True
        case ast.Name() if steps:
            binding = script.names.lookup(node.id, node)
            return binding is not None and _binds_number(script, binding, steps)
        case ast.Attribute():
            return script.names.full_name(node) in ("math.pi", "math.e")
    parts = _parts(script, node)
    return bool(parts) and all(_is_number(script, part, steps) for part in parts)


def _binds_number(script: Script, binding: Binding, steps: int) -> bool:
    if binding.how == "for":
        return _counts(script, binding)
    is_plain = binding.how in ("assign", "augment") and not binding.path
    return is_plain and _is_number(script, binding.value, steps - 1)
