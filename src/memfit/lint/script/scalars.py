"""Which tensors of a script are one number: of all others `float` fails."""

import ast

from memfit.fixes.guess_kind import kind_of
from memfit.lint.script.names import dotted
from memfit.lint.script.script import Script


def is_one_number(script: Script, node: ast.expr) -> bool:
    """Whether `node` is a tensor of one number: by what was assigned to it, or by its name."""
    value = _value_of(script, node)
    if isinstance(value, ast.Call):
        if script.kinds.of(value) == "prediction" or _is_by_row(script, value):
            return False
        if script.kinds.of(value.func) == "loss function":
            return True
    return "scalar" in (kind_of(node), kind_of(value))


def _value_of(script: Script, node: ast.expr) -> ast.expr:
    """Returns what was assigned to the name that `node` is, or `node` itself."""
    key = dotted(node)
    binding = script.names.lookup(key, node) if key else None
    is_assigned = binding is not None and binding.how == "assign" and not binding.path
    return binding.value if binding and binding.value and is_assigned else node


def _is_by_row(script: Script, call: ast.Call) -> bool:
    """Whether `call` gives a loss of each row: made so, or a function of `keras.losses`."""
    name = script.names.called(call) or ""
    if name.startswith("keras.losses.") and name.rpartition(".")[2][:1].islower():
        return True
    made = _value_of(script, call.func)
    keywords = [*call.keywords, *(made.keywords if isinstance(made, ast.Call) else ())]
    return any(keyword.arg == "reduction" for keyword in keywords)
