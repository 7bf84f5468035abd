"""Which columns and rows of which file an expression holds, and how they were changed."""

import ast
from dataclasses import dataclass, replace
from types import EllipsisType

from memfit.lint.script.bindings import Binding
from memfit.lint.script.constants import argument, number, text
from memfit.lint.script.script import Script

# What reads a file, and how the names of files end that a stream can read instead.
_ENDINGS = {
    "numpy.load": (".npy", ".npz"),
    "h5py.File": (".h5", ".hdf5"),
    "pandas.read_csv": (".csv", ".csv.gz", ".csv.bz2", ".csv.zst"),
    "pandas.read_parquet": (".parquet",),
    "pandas.read_feather": (".feather", ".arrow"),
}
# These change how a table is read, and not what is in it.
_HARMLESS = {"engine", "low_memory", "memory_map", "mode"}
_SAME_CALLS = {
    *("numpy.array", "numpy.asarray", "numpy.ascontiguousarray", "torch.from_numpy"),
    *("tensorflow.constant", "tensorflow.convert_to_tensor"),
}
_SAME_METHODS = {"to_numpy", "copy"}
# Row by row, so that a function of a batch can do it.
_CHANGING_CALLS = {
    *("numpy.expand_dims", "numpy.squeeze", "numpy.float32", "numpy.reshape", "tensorflow.cast"),
}
_CHANGING_METHODS = {"astype", "reshape", "fillna", "squeeze"}
_SPLITTING = "sklearn.model_selection.train_test_split"
_HELD_OUT_SHARE = 0.25  # the default of scikit-learn
_MOST_STEPS = 20


@dataclass(frozen=True, slots=True)
class FileColumns:
    """What an expression reads from a file.

    Attributes:
        path: The path of the file.
        reader: The full name of what reads it.
        columns: The columns by name; all of them if `None`.
        is_one: Whether it is a column itself, not a table of one.
        left_out: Columns that were removed from a table.
        changes: What is done to the rows, one expression each.
        split: The call that takes some of the rows for training.
    """

    path: ast.expr
    reader: str
    columns: tuple[str, ...] | None = None
    is_one: bool = False
    left_out: frozenset[str] = frozenset()
    changes: tuple[ast.AST, ...] = ()
    split: ast.Call | None = None

    @property
    def is_table(self) -> bool:
        """Whether the file is a table, whose columns stand side by side."""
        return self.reader.startswith("pandas.")


def find_columns(
    script: Script, node: ast.AST | None, steps: int = _MOST_STEPS
) -> FileColumns | None:
    """Returns what `node` reads from a file, or `None` if that is not understood."""
    match node if steps else None:
        case ast.Name() as name:
            return _columns_of_variable(script, name, steps - 1)
        case ast.Attribute(attr="values", value=inner):
            return find_columns(script, inner, steps - 1)
        case ast.Call() as call:
            return _columns_of_call(script, call, steps - 1)
        case ast.Subscript() as part:
            return _columns_of_column(script, part, steps - 1)
        case ast.BinOp(left=left, right=right) as changed:
            found = [
                one for side in (left, right) if (one := find_columns(script, side, steps - 1))
            ]
            return _change(found[0], changed) if len(found) == 1 else None
    return None


def held_out_share(script: Script, split: ast.Call) -> float | None:
    """Returns which share of the rows `train_test_split` leaves out, if that can be known."""
    keywords = {one.arg: one.value for one in split.keywords}
    if not set(keywords) <= {"test_size", "random_state"}:
        return None
    share = (
        number(script.names, keywords["test_size"]) if "test_size" in keywords else _HELD_OUT_SHARE
    )
    return share if share is not None and 0 < share < 1 else None


def is_everything(index: ast.expr) -> bool:
    """Whether an index takes all there is, as in `dataset[:]`."""
    match index:
        case ast.Slice(lower=None, upper=None, step=None) | ast.Constant(value=EllipsisType()):
            return True
        case ast.Tuple(elts=[]):
            return True
    return False


def _change(found: FileColumns | None, node: ast.AST) -> FileColumns | None:
    return None if found is None else replace(found, changes=(*found.changes, node))


def _columns_of_variable(script: Script, node: ast.Name, steps: int) -> FileColumns | None:
    binding = script.names.lookup(node.id, node)
    if binding is None or binding.how not in ("assign", "with"):
        return None
    found = (
        _columns_of_element(script, binding, steps)
        if binding.path
        else find_columns(script, binding.value, steps)
    )
    if found is None:
        return None
    written = _find_writes(script, node)
    if not found.is_table:
        return replace(found, changes=(*found.changes, *written))
    popped = _find_popped(script, node)
    if written or popped is None:
        return None
    return replace(found, left_out=found.left_out | popped)


def _columns_of_element(script: Script, binding: Binding, steps: int) -> FileColumns | None:
    """Returns what one of the names is that an assignment sets together."""
    match binding.value, binding.path:
        case ast.Tuple(elts=parts), (at,) if at < len(parts):
            return find_columns(script, parts[at], steps)
        case ast.Call(args=parts) as call, (at,) if script.names.called(call) == _SPLITTING:
            is_for_training = at % 2 == 0 and at // 2 < len(parts)
            found = find_columns(script, parts[at // 2], steps) if is_for_training else None
            is_first = found is not None and found.split is None
            return replace(found, split=call) if found is not None and is_first else None
    return None


def _columns_of_call(script: Script, call: ast.Call, steps: int) -> FileColumns | None:
    name = script.names.called(call)
    if name in _ENDINGS:
        return _columns_of_file(script, call, name)
    if name in _SAME_CALLS and call.args:
        found = find_columns(script, call.args[0], steps)
        return found if len(call.args) == 1 and not call.keywords else _change(found, call)
    if name in _CHANGING_CALLS and call.args:
        return _change(find_columns(script, call.args[0], steps), call)
    if name is None and isinstance(call.func, ast.Attribute):
        return _columns_of_method(script, call, call.func, steps)
    return None


def _columns_of_file(script: Script, call: ast.Call, name: str) -> FileColumns | None:
    keywords = {one.arg for one in call.keywords}
    most = 2 if name == "h5py.File" else 1  # the second is the mode
    if not 1 <= len(call.args) <= most or not keywords <= _HARMLESS:
        return None
    known = text(script.names, call.args[0])
    is_readable = known is None or known.lower().endswith(_ENDINGS[name])
    return FileColumns(call.args[0], name) if is_readable else None


def _columns_of_method(
    script: Script, call: ast.Call, method: ast.Attribute, steps: int
) -> FileColumns | None:
    found = find_columns(script, method.value, steps)
    if found is None:
        return None
    is_bare = not call.args and not call.keywords
    if method.attr in _SAME_METHODS:
        return found if is_bare else _change(found, call)
    if method.attr in _CHANGING_METHODS:
        return _change(found, call)
    if method.attr == "pop" and found.is_table and found.columns is None:
        column = text(script.names, argument(call, 0, "item"))
        return None if column is None else replace(found, columns=(column,), is_one=True)
    if method.attr == "drop" and found.is_table and found.columns is None:
        return _leave_out(script, call, found)
    return None


def _leave_out(script: Script, call: ast.Call, table: FileColumns) -> FileColumns | None:
    """Returns a table after `table.drop(...)`, if that is about columns."""
    keywords = {one.arg: one.value for one in call.keywords}
    match call.args, keywords:
        case [], {"columns": names} if len(keywords) == 1:
            pass
        case [names], {"axis": ast.Constant(value=1 | "columns")} if len(keywords) == 1:
            pass
        case _:
            return None
    found = _read_names(script, names)
    return None if found is None else replace(table, left_out=table.left_out | {*found})


def _read_names(script: Script, node: ast.expr) -> tuple[str, ...] | None:
    """Returns the names in a list of them, or the one name that it is."""
    if isinstance(node, ast.Name):
        binding = script.names.lookup(node.id, node)
        is_plain = binding is not None and binding.how == "assign" and not binding.path
        node = binding.value if binding is not None and is_plain and binding.value else node
    parts = node.elts if isinstance(node, ast.List) else [node]
    found = [text(script.names, one) for one in parts]
    names = tuple(one for one in found if one is not None)
    return names if len(names) == len(found) and names else None


def _columns_of_column(script: Script, node: ast.Subscript, steps: int) -> FileColumns | None:
    found = find_columns(script, node.value, steps)
    if found is None or is_everything(node.slice):
        return found
    names = _read_names(script, node.slice)
    if names is None or found.changes:
        return None
    is_one = text(script.names, node.slice) is not None
    if found.reader == "h5py.File" and is_one:  # groups lead to a dataset
        return replace(found, columns=("/".join((*(found.columns or ()), *names)),), is_one=True)
    if found.columns is not None or not (is_one or found.is_table):
        return None
    return replace(found, columns=names, is_one=is_one)


def _find_writes(script: Script, name: ast.Name) -> list[ast.AST]:
    """Returns the statements that write into what a variable holds, wherever they stand."""
    owner = script.names.owner(name.id, name)
    found: list[ast.AST] = []
    for node in script.tree.within(owner, ast.Subscript, ast.Call):
        match node:
            case ast.Subscript(ctx=ast.Store() | ast.Del()):
                is_write, target = True, node.value
            case ast.Call(func=ast.Attribute(attr=method, value=target)):
                is_write = method == "insert" or any(one.arg == "inplace" for one in node.keywords)
            case _:
                continue
        while isinstance(target, ast.Attribute | ast.Subscript):  # as in table.loc[...] = ...
            target = target.value
        if is_write and isinstance(target, ast.Name) and target.id == name.id:
            found.append(script.tree.statement(node))
    return found


def _find_popped(script: Script, table: ast.Name) -> frozenset[str] | None:
    """Returns the columns that were removed from a table before it is used here, if all known."""
    position = script.tree.begin(table)
    found = set()
    for call in script.tree.within(script.names.owner(table.id, table), ast.Call):
        match call.func:
            case ast.Attribute(attr="pop", value=ast.Name(id=name)) if name == table.id:
                if script.tree.begin(call) < position:
                    found.add(text(script.names, argument(call, 0, "item")))
    known = frozenset(one for one in found if one is not None)
    return known if len(known) == len(found) else None
