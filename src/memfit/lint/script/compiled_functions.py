"""Functions that a framework compiles: `tf.function`, `jax.jit`, `torch.compile`."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from memfit.lint.script.names import Names
from memfit.lint.script.tree import FUNCTIONS, Function

COMPILERS = {
    "tensorflow.function": "tf.function",
    "jax.jit": "jax.jit",
    "jax.pmap": "jax.pmap",
    "torch.compile": "torch.compile",
}
_MOST_STEPS = 5


@dataclass(frozen=True, slots=True)
class CompiledFunction:
    """One place where a function is handed to a compiler.

    Attributes:
        compiler: Such as `"tf.function"`.
        node: The decorator or the call.
        subject: What is compiled: a function of this script, or an expression.
        options: Keywords given to the compiler.
    """

    compiler: str
    node: ast.expr
    subject: ast.AST
    options: tuple[ast.keyword, ...] = ()

    @property
    def option_names(self) -> set[str | None]:
        """Names of the keywords given to the compiler."""
        return {option.arg for option in self.options}


class CompiledFunctions:
    """The functions of a script that a framework compiles.

    Args:
        names: The names of the script.
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self.all = tuple(self._find())
        self._of_function: dict[Function, CompiledFunction] = {}
        for one in self.all:
            if function := self.names.function(one.subject):
                self._of_function.setdefault(function, one)

    def _find(self) -> Iterator[CompiledFunction]:
        decorators: set[ast.expr] = set()
        for function in self.names.tree.within(
            self.names.tree.module, ast.FunctionDef, ast.AsyncFunctionDef
        ):
            for decorator in function.decorator_list:
                if made := self._read(decorator, function):
                    decorators.add(decorator)
                    yield made
        for call in self.names.tree.calls:
            compiler = COMPILERS.get(self.names.called(call) or "")
            if compiler and call.args and call not in decorators:
                yield CompiledFunction(compiler, call, call.args[0], tuple(call.keywords))

    def _read(self, decorator: ast.expr, function: Function) -> CompiledFunction | None:
        """Reads `@tf.function`, `@tf.function(...)` and `@partial(jax.jit, ...)`."""
        call = decorator if isinstance(decorator, ast.Call) else None
        target = call.func if call else decorator
        if call and self.names.full_name(target) == "functools.partial" and call.args:
            target = call.args[0]
        compiler = COMPILERS.get(self.names.full_name(target) or "")
        options = tuple(call.keywords) if call else ()
        return CompiledFunction(compiler, decorator, function, options) if compiler else None

    def of_function(self, function: Function | None) -> CompiledFunction | None:
        """Returns how `function` is compiled wherever it is called by its own name."""
        found = self._of_function.get(function) if function is not None else None
        is_decorated = found is not None and found.subject is function
        return found if is_decorated and isinstance(function, FUNCTIONS) else None

    def is_compiled(self, node: ast.AST) -> bool:
        """Whether `node` is in a function that is compiled, by decorator or by a call."""
        function = self.names.tree.function(node)
        while function is not None:
            if function in self._of_function:
                return True
            function = self.names.tree.function(function)
        return False

    def called(self, callee: ast.expr, steps: int = _MOST_STEPS) -> CompiledFunction | None:
        """Returns how what `callee` names was compiled, or `None` if it is not known to be."""
        function = self.names.function(callee)
        if function is not None:
            return self.of_function(function)
        for one in self.all:
            if one.node is callee:
                return one
        key = callee.id if isinstance(callee, ast.Name) else None
        if isinstance(callee, ast.Attribute) and isinstance(callee.value, ast.Name):
            key = f"{callee.value.id}.{callee.attr}"
        binding = self.names.lookup(key, callee) if key else None
        is_plain = binding is not None and binding.how == "assign" and not binding.path
        if binding is None or binding.value is None or not is_plain or not steps:
            return None
        return self.called(binding.value, steps - 1)
