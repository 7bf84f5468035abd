"""Some columns of a source: by name, and in the order in which they are named."""

from collections.abc import Iterator, Mapping, Sequence

from memfit.errors import DataError, UsageError
from memfit.streaming.data.source import Array, Ranges, Source, Values, row_bytes
from memfit.streaming.views.concatenate import cut

# Rows that are read together where there are no groups.
_PIECE_BYTES = 1 << 20


class Selected:
    """A source without some of its columns: these are read, and left out.

    Args:
        source: All columns.
        columns: The names of those to keep.

    Raises:
        DataError: There is no such column.
    """

    def __init__(self, source: Source, columns: Sequence[str]) -> None:
        by_name = {one.name: one for one in source.schema}
        self.schema = tuple(by_name[name] for name in pick(columns, list(by_name), "this data"))
        self._source = source
        self.num_rows = source.num_rows
        self.groups = source.groups
        self.is_shuffled = source.is_shuffled
        self.scratch_bytes = source.scratch_bytes + piece_bytes(source)

    def fingerprint(self) -> str:
        """Returns the text of all columns and the names of these."""
        return f"{self._source.fingerprint()}:{','.join(one.name for one in self.schema)}"

    def check(self) -> None:
        """Raises if the source was changed."""
        self._source.check()

    def read(self, start: int, stop: int) -> dict[str, Values]:
        """Returns rows."""
        found = self._source.read(start, stop)
        return {one.name: found[one.name] for one in self.schema}

    def read_into(self, ranges: Ranges, into: Mapping[str, Array]) -> None:
        """Reads rows into arrays, a piece at a time."""
        for at, values in read_pieces(self._source, ranges):
            for one in self.schema:
                found = values[one.name]
                into[one.name][at : at + len(found)] = found
            del values, found  # before the next are read


def pick(columns: Sequence[str] | None, names: Sequence[str], where: str) -> list[str]:
    """Returns the names of the columns to read: those that are asked for, or all.

    Raises:
        DataError: One is not there.
    """
    missing = [one for one in columns or () if one not in names]
    if missing:
        raise DataError(f"There is no column {missing[0]!r} in {where}. Found: {', '.join(names)}.")
    return list(names if columns is None else columns)


def check_columns(columns: object) -> None:
    """Raises if `columns` is not a list of different names."""
    if (
        isinstance(columns, str)
        or not isinstance(columns, Sequence)
        or not columns
        or not all(isinstance(one, str) for one in columns)
        or len(set(columns)) < len(columns)
    ):
        raise UsageError(
            f"columns must be a list of different names, one or more. Received: {columns!r}."
        )


def piece_bytes(source: Source) -> int:
    """Returns the most that the values of one of `read_pieces` take."""
    if source.groups is None:
        return max(_PIECE_BYTES, int(row_bytes(source.schema)))
    return int((source.groups[1:] - source.groups[:-1]).max() * row_bytes(source.schema))


def read_pieces(source: Source, ranges: Ranges) -> Iterator[tuple[int, Mapping[str, Values]]]:
    """Gives the rows of all ranges, no more than a group at a time, and the place of the first."""
    edges = None if source.groups is None else source.groups.tolist()
    most = max(1, int(_PIECE_BYTES / row_bytes(source.schema)))
    at = 0
    for start, stop in ranges:
        if edges is None:
            pieces = [(one, min(one + most, stop)) for one in range(start, stop, most)]
        else:
            pieces = [
                (edges[group] + first, edges[group] + last)
                for group, first, last in cut(edges, start, stop)
            ]
        for first, last in pieces:
            yield at, source.read(first, last)
            at += last - first
