"""The `memfit.stream` call for the files that a script reads into memory."""

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memfit.lint.script.constants import argument, number, text
from memfit.lint.script.script import Script, shown
from memfit.lint.script.tf_data_chains import Stage
from memfit.lint.suggest.file_columns import FileColumns, find_columns, held_out_share

# The default of `fit`.
_BATCH_SIZE = "32"
# Stages of a pipeline that a stream has arguments for, or needs not.
_TAKEN_OVER = {"shuffle", "batch", "prefetch", "cache", "map"}
_MOST_CHANGES = 3

# Returns the call that reads the file which the data of an expression comes from.
FindLoad = Callable[[ast.AST], ast.expr | None]


@dataclass(frozen=True, slots=True)
class _Source:
    """What is streamed.

    Attributes:
        code: The code of it.
        options: The code of arguments that say which columns.
        changes: What is done to the rows on the way, in words.
        split: The call that keeps only some of the rows.
    """

    code: str
    options: tuple[str, ...]
    changes: tuple[str, ...]
    split: ast.Call | None


def write_stream(script: Script, call: ast.Call, find_load: FindLoad) -> str | None:
    """Returns what to do instead of `call`, or `None` where the files cannot be streamed.

    Args:
        script: The script.
        call: `fit`, or what makes a dataset of arrays.
        find_load: Finds where data comes from.
    """
    is_fit = script.kinds.is_fit(call)
    source = _find_source(script, _parts_of(call, is_fit=is_fit), find_load)
    stages = () if is_fit else _find_stages(script, call)
    if source is None or stages is None:
        return None
    options = _options_of_fit(call) if is_fit else _options_of_stages(stages)
    code = f"data = memfit.stream({', '.join((source.code, *options, *source.options))})"
    instead = _finish(script, call, source.split, is_fit=is_fit)
    if instead is None:
        return None
    mapped = [f"{one.text} (line {one.line})" for one in stages if one.name == "map"]
    changes = [*source.changes, *mapped]
    if not changes:
        return f"{code}{instead}"
    more = ", ..." if len(changes) > _MOST_CHANGES else ""
    return f"{code}{instead}; {', '.join(changes[:_MOST_CHANGES])}{more} goes into map="


def _parts_of(call: ast.Call, *, is_fit: bool) -> list[ast.expr]:
    """Returns features, labels and weights, as far as they are given."""
    if is_fit:
        given = (
            argument(call, 0, "x"),
            argument(call, 1, "y"),
            argument(call, 99, "sample_weight"),
        )
        found = [one for one in given if one is not None]
        return found if list(given[: len(found)]) == found else []
    if ast.unparse(call.func).endswith("from_tensors"):  # one element, not rows
        return []
    match argument(call, 0, "tensors"):
        case ast.Tuple(elts=parts) if 1 <= len(parts) <= 3:
            return parts
        case ast.expr() as data if not isinstance(data, ast.Dict):
            return [data]
    return []


# What is streamed


def _find_source(script: Script, parts: Sequence[ast.expr], find_load: FindLoad) -> _Source | None:
    found = [find_columns(script, one) for one in parts]
    known = [one for one in found if one is not None]
    others = [part for part, one in zip(parts, found, strict=True) if one is None]
    if not found or found[0] is None or any(find_load(one) is not None for one in others):
        return None
    splits = {one.split for one in known}
    if len(splits) > 1 or (others and splits != {None}):
        return None
    changes = _describe(script, [change for one in known for change in one.changes])
    if any(one.is_table or one.columns is not None for one in known):
        options = None if others else _select(script, known)
        if options is None:
            return None
        return _Source(ast.unparse(found[0].path), options, changes, found[0].split)
    code = _write_files(script, parts, found)
    # What is computed is computed again, from the rows of a batch.
    computed = [one for one in others if not isinstance(one, ast.Name)]
    changes += _describe(script, computed)
    is_in_order = not computed or computed == [parts[-1]]
    return _Source(code, (), changes, found[0].split) if code and is_in_order else None


def _describe(script: Script, changes: Sequence[ast.AST]) -> tuple[str, ...]:
    """Tells of what is done to rows; what is part of a larger expression goes with that."""
    outer = [
        one
        for one in changes
        if not any(one is not other and script.tree.is_within(one, other) for other in changes)
    ]
    places = sorted((getattr(one, "lineno", 0), shown(one)) for one in outer)
    return tuple(f"{code} (line {line})" for line, code in dict.fromkeys(places))


def _write_files(
    script: Script, parts: Sequence[ast.expr], found: Sequence[FileColumns | None]
) -> str | None:
    """Returns the code of arrays in files of their own, and of names that stand for arrays."""
    files = [one for one in found if one is not None]
    paths = [ast.unparse(one.path) for one in files]
    is_archive = [(text(script.names, one.path) or "").endswith(".npz") for one in files]
    is_plain = all(one.reader == "numpy.load" for one in files) and not any(is_archive)
    if not is_plain or len({*paths}) < len(paths):
        return None
    given = [
        ast.unparse(part if one is None else one.path)
        for part, one in zip(parts, found, strict=True)
        if one is not None or isinstance(part, ast.Name)
    ]
    return given[0] if len(given) == 1 else f"({', '.join(given)})"


def _select(script: Script, found: Sequence[FileColumns]) -> tuple[str, ...] | None:
    """Returns the arguments that take columns of one file, as features and label."""
    features, labels = found[0], found[1:]
    files = {(one.reader, ast.unparse(one.path)) for one in found}
    if len(files) > 1 or len(labels) > 1 or not all(one.is_one for one in labels):
        return None
    label = next((one.columns[0] for one in labels if one.columns), None)
    if label is not None and label in (features.columns or ()):
        return None
    labelled = () if label is None else (f"label={label!r}",)
    columns = () if features.columns is None else (f"columns={[*features.columns]!r}",)
    if features.is_table and not features.is_one:
        left_out = frozenset() if label is None else {label}
        is_rest = features.columns is not None or features.left_out == left_out
        return (*columns, *labelled, "features='matrix'") if is_rest else None
    known = text(script.names, features.path)
    is_array = features.reader == "numpy.load" and not (known or ".npz").endswith(".npz")
    return (*columns, *labelled) if features.is_one and not is_array else None


# How it is streamed


def _options_of_fit(call: ast.Call) -> tuple[str, ...]:
    size = argument(call, 2, "batch_size")
    is_known = size is not None and not (isinstance(size, ast.Constant) and size.value is None)
    options = [f"batch_size={ast.unparse(size) if size is not None and is_known else _BATCH_SIZE}"]
    shuffle = argument(call, 99, "shuffle")
    if not (isinstance(shuffle, ast.Constant) and shuffle.value is False):
        options.append("shuffle=True")
    weights = argument(call, 99, "class_weight")
    return (*options, *([] if weights is None else [f"class_weight={ast.unparse(weights)}"]))


def _find_stages(script: Script, dataset: ast.Call) -> tuple[Stage, ...] | None:
    """Returns what is done with a dataset; `None` if a stream would not do the same."""
    pipelines = [script.chains.before(one) for one in script.tree.calls]
    own = [one.stages for one in pipelines if one.source is dataset]
    longest = max(own, key=len, default=())
    is_one = all(longest[: len(stages)] == stages for stages in own)
    names = [one.name for one in longest]
    is_known = set(names) <= _TAKEN_OVER and names.count("batch") <= 1
    return longest if is_one and is_known else None


def _options_of_stages(stages: Sequence[Stage]) -> tuple[str, ...]:
    batch = next((one.call for one in stages if one.name == "batch"), None)
    size = None if batch is None else argument(batch, 0, "batch_size")
    if batch is None or size is None:
        return (f"batch_size={_BATCH_SIZE}", "shuffle=True")
    options = [f"batch_size={ast.unparse(size)}"]
    if any(one.name == "shuffle" for one in stages):
        options.append("shuffle=True")
    drops = argument(batch, 1, "drop_remainder")
    return (*options, *([] if drops is None else [f"drop_remainder={ast.unparse(drops)}"]))


def _finish(script: Script, call: ast.Call, split: ast.Call | None, *, is_fit: bool) -> str | None:
    """Returns the lines after the stream: parts of the rows, and what takes them."""
    code, data, more = "", "data", ""
    if split is not None:
        share = held_out_share(script, split)
        if share is None:
            return None
        code, data = f"; train, held_out = data.split({1 - share:g})", "train"
    if not is_fit:
        return f"{code}, {data} in place of the dataset" if code else " in place of the dataset"
    validation = argument(call, 99, "validation_split")
    if validation is not None:
        share = number(script.names, validation)
        if share is None or not 0 < share < 1:
            return None
        code += f"; train, validation = {data}.split({1 - share:g})"
        data, more = "train", " validation_data=validation,"
    return f"{code}, then {shown(call.func)}({data},{more} ...)"
