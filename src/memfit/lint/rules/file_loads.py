"""Family MF1, files: data read whole into memory on its way into training."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from memfit.lint.rules.rule import Match, Rule
from memfit.lint.script.constants import argument, text
from memfit.lint.script.script import Script, shown
from memfit.lint.suggest.file_columns import is_everything
from memfit.lint.suggest.stream_call import write_stream

FILE_INTO_DATASET = Rule(
    "MF103",
    "file-into-dataset",
    "data-in-memory",
    "A file read whole into from_tensor_slices is in memory twice: the array, and the copy that "
    "the dataset makes.",
)
FILE_INTO_FIT = Rule(
    "MF104",
    "file-into-fit",
    "data-in-memory",
    "A file read whole into fit is in memory twice on TensorFlow: the array, and the copy that fit "
    "makes.",
)
RULES = (FILE_INTO_DATASET, FILE_INTO_FIT)

_PANDAS = {
    f"pandas.{name}"
    for name in ("read_csv", "read_parquet", "read_feather", "read_hdf", "read_pickle")
}
_WHOLE = {
    *("numpy.load", "numpy.loadtxt", "numpy.genfromtxt", "numpy.fromfile", "pickle.load"),
    *("joblib.load", "scipy.io.loadmat", *_PANDAS),
}
# With one of these only a part is read, or nothing until it is used.
_PARTIAL = {
    "mmap_mode",
    "nrows",
    "chunksize",
    "iterator",
    "usecols",
    "columns",
    "count",
    "max_rows",
}
# What comes from one of these is fetched for the occasion, and small.
_FETCHING = ("get_file", "urlretrieve", "hf_hub_download", "dataset_download")
_PASSING_METHODS = {
    *("astype", "to_numpy", "copy", "reshape", "drop", "dropna", "fillna", "transpose", "squeeze"),
    *("to_dict", "swapaxes", "get"),
}
_PASSING_ATTRIBUTES = {"values", "T"}
_PASSING_CALLS = {
    *("numpy.array", "numpy.asarray", "numpy.ascontiguousarray", "numpy.expand_dims"),
    *("numpy.transpose", "numpy.squeeze", "numpy.float32", "numpy.reshape", "dict", "list"),
    *("tensorflow.constant", "tensorflow.convert_to_tensor", "tensorflow.cast"),
    *("sklearn.model_selection.train_test_split", "torch.from_numpy"),
}
_MOST_STEPS = 20


@dataclass(frozen=True, slots=True)
class _Load:
    call: ast.expr
    is_table: bool

    @property
    def line(self) -> int:
        return self.call.lineno


def check(script: Script) -> Iterator[Match]:
    """Yields where a file that `script` reads whole goes into a dataset or into `fit`."""
    for call in script.tree.calls:
        name = script.names.called(call) or ""
        if name.endswith(("Dataset.from_tensor_slices", "Dataset.from_tensors")):
            rule, what = FILE_INTO_DATASET, "the copy that the dataset makes"
        elif script.kinds.is_fit(call):
            rule, what = FILE_INTO_FIT, "the copy that fit makes on TensorFlow"
        else:
            continue
        data = argument(call, 0, "tensors" if rule is FILE_INTO_DATASET else "x")
        load = _load(script, data)
        if load is not None:
            yield Match(
                rule,
                call,
                f"{shown(load.call)} (line {load.line}) reads all of a file into memory, and "
                f"{shown(call.func)} adds {what}",
                write_stream(script, call, partial(_find_call, script)) or _fix(script, load),
            )


def _find_call(script: Script, node: ast.AST) -> ast.expr | None:
    load = _load(script, node)
    return None if load is None else load.call


def _fix(script: Script, load: _Load) -> str:
    path = load.call.args[0] if isinstance(load.call, ast.Call) and load.call.args else None
    what = shown(path) if path is not None else "..."
    return f"read batches of {what} in the __getitem__ of a keras.utils.PyDataset"


def _load(script: Script, node: ast.AST | None, steps: int = _MOST_STEPS) -> _Load | None:
    """Returns the load that the data of `node` comes from, if it is a whole file."""
    match node:
        case ast.Call() if steps:
            return _load_of_call(script, node, steps)
        case ast.Subscript() if steps:
            return _load_of_part(script, node, steps)
    return _first_load(script, _sources(script, node), steps - 1) if steps else None


def _first_load(script: Script, nodes: Iterable[ast.AST], steps: int) -> _Load | None:
    return next((load for node in nodes if (load := _load(script, node, steps))), None)


def _sources(script: Script, node: ast.AST | None) -> list[ast.expr]:
    """Returns the expressions that the data of `node` comes from."""
    match node:
        case ast.Name():
            binding = script.names.lookup(node.id, node)
            is_value = binding is not None and binding.how in ("assign", "with")
            return [binding.value] if binding and is_value and binding.value else []
        case ast.Attribute(attr=name, value=inner) if name in _PASSING_ATTRIBUTES:
            return [inner]
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
            return parts
    return []


def _load_of_call(script: Script, call: ast.Call, steps: int) -> _Load | None:
    name = script.names.called(call)
    if name in _WHOLE:
        is_whole = not _PARTIAL & {keyword.arg for keyword in call.keywords}
        is_own = not call.args or not _is_fetched(script, call.args[0])
        return _Load(call, name in _PANDAS) if is_whole and is_own else None
    if name in ("numpy.array", "numpy.asarray") and _is_h5_dataset(script, call, steps):
        return _Load(call, False)
    if name in _PASSING_CALLS:
        parts = call.args if name.endswith("train_test_split") else call.args[:1]
        return _first_load(script, parts, steps - 1)
    if isinstance(call.func, ast.Attribute) and call.func.attr in _PASSING_METHODS:
        return _load(script, call.func.value, steps - 1)
    return None


def _load_of_part(script: Script, node: ast.Subscript, steps: int) -> _Load | None:
    if is_everything(node.slice):
        return _Load(node, False) if _is_h5(script, node.value, steps) else None
    is_name = isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str)
    if not is_name and not isinstance(node.slice, ast.Name | ast.List):
        return None  # some of the rows
    load = _load(script, node.value, steps - 1)
    # One column of a table is often a list of file names.
    return None if load is None or (load.is_table and is_name) else load


def _is_h5_dataset(script: Script, call: ast.Call, steps: int) -> bool:
    match call.args:
        case [ast.Subscript(slice=name) as dataset] if text(script.names, name) is not None:
            return _is_h5(script, dataset, steps)
    return False


def _is_h5(script: Script, node: ast.AST | None, steps: int) -> bool:
    match node:
        case ast.Subscript(value=inner):
            return _is_h5(script, inner, steps)
        case ast.Call():
            return script.names.called(node) == "h5py.File"
        case ast.Name() if steps:
            binding = script.names.lookup(node.id, node)
            return binding is not None and _is_h5(script, binding.value, steps - 1)
    return False


def _is_fetched(script: Script, path: ast.expr, steps: int = 5) -> bool:
    """Whether `path` is an address, or a file that was fetched from one."""
    for node in ast.walk(path):
        if (text(script.names, node) or "").startswith(("http://", "https://")):
            return True
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(_FETCHING):
            return True
        if isinstance(node, ast.Name) and steps:
            binding = script.names.lookup(node.id, node)
            value = binding.value if binding is not None and binding.how != "for" else None
            if value is not None and _is_fetched(script, value, steps - 1):
                return True
    return False
