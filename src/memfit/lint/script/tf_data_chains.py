"""Pipelines of tf.data: the stages before a stage, through as many variables as it takes."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from memfit.lint.script.constants import argument
from memfit.lint.script.expression_kinds import ExpressionKinds
from memfit.lint.script.names import Names

_STAGES = {
    *("apply", "batch", "bucket_by_sequence_length", "cache", "concatenate", "enumerate", "filter"),
    *(
        "flat_map",
        "group_by_window",
        "ignore_errors",
        "interleave",
        "map",
        "options",
        "padded_batch",
    ),
    *("prefetch", "ragged_batch", "rebatch", "repeat", "scan", "shard", "shuffle", "skip", "take"),
    *("take_while", "unbatch", "unique", "window", "with_options", "zip"),
}
_BATCHING = {"batch", "padded_batch", "ragged_batch", "rebatch", "bucket_by_sequence_length"}
_UNBATCHING = {"unbatch", "flat_map", "interleave", "window", "group_by_window", "apply"}
_NOT_TF_DATA = {"grain", "datasets", "webdataset", "torchdata", "torch", "ray", "polars", "pandas"}
_MOST_STEPS = 60
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a pipeline, or the function that it begins with.

    Attributes:
        name: Its method, such as `"batch"`; for the function that a pipeline begins with, `None`.
        call: Where it is called.
    """

    name: str | None
    call: ast.Call

    @property
    def text(self) -> str:
        """The stage without what it is called on, such as `.batch(32)`."""
        function = ast.unparse(self.call.func)
        arguments = ast.unparse(self.call).removeprefix(function)
        name = function if self.name is None else f".{self.name}"
        return name + (arguments if len(arguments) <= _LONGEST else "(...)")

    @property
    def line(self) -> int:
        """The line that its name stands on, which need not be the one its chain begins on."""
        return self.call.func.end_lineno or self.call.lineno


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline up to one of its stages.

    Attributes:
        source: What the first stage is called on.
        stages: All stages, in the order in which data flows.
    """

    source: ast.expr
    stages: tuple[Stage, ...]

    def after(self, *names: str) -> tuple[Stage, ...]:
        """Returns the stages after the last one called one of `names`; none if there is none."""
        for index in range(len(self.stages) - 1, -1, -1):
            if self.stages[index].name in names:
                return self.stages[index:]
        return ()


class TfDataChains:
    """The tf.data pipelines of a script.

    Args:
        names: The names of the script.
        kinds: What its expressions give.
    """

    def __init__(self, names: Names, kinds: ExpressionKinds) -> None:
        self.names = names
        self.kinds = kinds

    def ending_in(self, name: str) -> Iterator[tuple[Stage, Pipeline]]:
        """Yields each stage called `name`, with the pipeline before it."""
        for call in self.names.tree.calls:
            if isinstance(call.func, ast.Attribute) and call.func.attr == name:
                pipeline = self.before(call.func.value)
                if self._is_tf_data(pipeline):
                    yield Stage(name, call), self._surely(pipeline, call)

    def _surely(self, pipeline: Pipeline, call: ast.Call) -> Pipeline:
        """Returns `pipeline` without stages that may not be there whenever `call` is."""
        tree = self.names.tree
        stages = (one for one in pipeline.stages if not tree.may_exclude(one.call, call))
        return Pipeline(pipeline.source, tuple(stages))

    def before(self, node: ast.expr) -> Pipeline:
        """Returns the pipeline that `node` stands for."""
        stages: list[Stage] = []
        for _ in range(_MOST_STEPS):
            match node:
                case ast.Call(func=ast.Attribute(attr=name, value=upstream)) if name in _STAGES:
                    if self.names.full_name(node.func) is not None:
                        break
                    stages.append(Stage(name, node))
                    node = upstream
                case ast.Name() | ast.Attribute() | ast.Call():
                    value = self._value(node)
                    if value is None:
                        break
                    node = value
                case _:
                    break
        return Pipeline(node, tuple(reversed(stages)))

    def _value(self, node: ast.expr) -> ast.expr | None:
        """Returns what a variable was last set to, or what a function of the script returns."""
        if isinstance(node, ast.Call):
            function = self.names.function(node.func)
            returned = self.kinds.returned(function) if function else []
            return returned[0] if len(returned) == 1 else None
        key = ast.unparse(node)
        binding = self.names.lookup(key, node)
        if binding is None or binding.how != "assign":
            return None
        is_call = isinstance(binding.value, ast.Call)
        return binding.value if not binding.path or is_call else None

    def _is_tf_data(self, pipeline: Pipeline) -> bool:
        name = self.names.called(pipeline.source) or self.names.full_name(pipeline.source)
        if name is None:
            return self.names.uses_keras
        package = name.lstrip(".").split(".")[0]
        if package in ("tensorflow", "tensorflow_datasets", "keras"):
            return True
        return self.names.uses_keras and package not in _NOT_TF_DATA

    def batching(self, pipeline: Pipeline) -> Stage | None:
        """Returns the stage that makes batches of the elements of `pipeline`, if one does."""
        for stage in reversed(pipeline.stages):
            if stage.name in _UNBATCHING:
                return None
            if stage.name in _BATCHING:
                return stage
        source = pipeline.source
        if isinstance(source, ast.Call) and self._gives_batches(source):
            return Stage(None, source)
        return None

    def _gives_batches(self, source: ast.Call) -> bool:
        name = self.names.called(source) or ""
        size = argument(source, 99, "batch_size")
        is_none = isinstance(size, ast.Constant) and size.value is None
        if name.startswith("keras.") and name.endswith("_dataset_from_directory"):
            return not is_none
        return name == "tensorflow_datasets.load" and size is not None and not is_none
