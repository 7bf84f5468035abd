"""Some columns of a source: by name, and in the order in which they are named."""

from collections.abc import Mapping, Sequence

from memfit.streaming.data.reading import chunk_bytes, pick, read_chunks
from memfit.streaming.data.source import Array, Ranges, Source, Values


class ColumnSelection:
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
        self.scratch_bytes = source.scratch_bytes + chunk_bytes(source)

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
        """Reads rows into arrays, a chunk at a time."""
        for at, values in read_chunks(self._source, ranges):
            for one in self.schema:
                found = values[one.name]
                into[one.name][at : at + len(found)] = found
            del values, found  # before the next are read
