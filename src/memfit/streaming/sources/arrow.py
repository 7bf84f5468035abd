"""Arrow IPC files, which Feather files are too: their columns, read a record batch at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from memfit.errors import DataError
from memfit.streaming.data.reading import pick
from memfit.streaming.data.source import Column, Values, row_bytes
from memfit.streaming.files.local import DataFile
from memfit.streaming.files.optional_packages import load
from memfit.streaming.files.remote import RemoteFile, RemotePath
from memfit.streaming.sources import arrow_tables
from memfit.streaming.sources.arrow_tables import ArrowFile
from memfit.streaming.sources.row_groups import RowGroupSource, edges_of

# A record batch as it is stored, and decompressed.
_DECODING = 2
_MAGIC = b"ARROW1"
_OLD_MAGIC = b"FEA1"
_STREAM_MAGIC = b"\xff\xff\xff\xff"


class ArrowSource(ArrowFile):
    """The rows of an Arrow file.

    Args:
        path: Where it is.
        columns: The columns to read; all of them if `None`.

    Raises:
        DataError: It cannot be read, or holds what cannot be streamed.
    """

    a_kind = "an Arrow file"
    kinds = "Arrow files"

    def __init__(self, path: Path | RemotePath, columns: Sequence[str] | None = None) -> None:
        super().__init__(path)
        self._ipc = load("pyarrow.ipc", self.kinds, "parquet")
        _check_magic(self._file)
        with self._reading("its footer"):
            fields = self._ipc.open_file(self._open_bytes()).schema
        names = pick(columns, fields.names, str(path))
        self._fields = [fields.get_field_index(name) for name in names]
        schema = [arrow_tables.describe_field(fields.field(at), str(path)) for at in self._fields]
        is_dictionary = self._pyarrow.types.is_dictionary
        self._categorical = {name for name in names if is_dictionary(fields.field(name).type)}
        with self._reading("a record batch"):
            sizes, schema = self._scan(schema)
        # Some writers leave record batches without rows.
        self._numbers = [at for at, size in enumerate(sizes) if size > 0]
        if not self._numbers:
            raise DataError(f"{path} has no rows. Leave it out, or write it again.")
        scratch_bytes = int(_DECODING * max(sizes) * row_bytes(tuple(schema)))
        RowGroupSource.__init__(
            self, tuple(schema), edges_of([one for one in sizes if one > 0]), scratch_bytes
        )

    def decode(self, group: int) -> Iterator[tuple[str, Values]]:
        """Gives the columns of a record batch."""
        number = self._numbers[group]
        with self._opening, self._reading(f"record batch {number}"):
            if self._reader is None:
                self._reader = self._open(self._fields)
            batch = self._reader.get_batch(number)
        for column in self.schema:
            where = f"{self._file.path}, record batch {number},"
            values = arrow_tables.to_values(batch.column(column.name), column, where)
            yield column.name, values

    def _open(self, fields: Sequence[int], *, is_mapped: bool = False) -> Any:
        options = self._ipc.IpcReadOptions(included_fields=sorted(fields))
        return self._ipc.open_file(self._open_bytes(is_mapped=is_mapped), options=options)

    def _open_bytes(self, *, is_mapped: bool = False) -> Any:
        path = self._file.path
        if isinstance(path, RemotePath):
            return path.open_file()
        return (self._pyarrow.memory_map if is_mapped else self._pyarrow.OSFile)(str(path))

    def _scan(self, schema: Sequence[Column]) -> tuple[list[int], list[Column]]:
        """Counts rows and steps and finds categories; the file is mapped, so little is read."""
        special = [
            at
            for at, one in zip(self._fields, schema, strict=True)
            if one.is_ragged or one.name in self._categorical
        ]
        reader = self._open(special or self._fields[:1], is_mapped=True)
        sizes = []
        num_steps = dict.fromkeys((one.name for one in schema if one.is_ragged), 0)
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            sizes.append(batch.num_rows)
            for name in num_steps:
                num_steps[name] += len(batch.column(name).flatten())
        columns = [
            replace(one, mean_length=num_steps[one.name] / max(sum(sizes), 1))
            if one.is_ragged
            else one
            for one in schema
        ]
        if sizes:
            columns = [
                arrow_tables.with_categories(one, batch.column(one.name).dictionary)
                if one.name in self._categorical
                else one
                for one in columns
            ]
        return sizes, columns


def open_file(path: Path | RemotePath, columns: Sequence[str] | None = None) -> ArrowSource:
    """Returns the rows of an Arrow or Feather file."""
    return ArrowSource(path, columns)


def _check_magic(file: DataFile | RemoteFile) -> None:
    """Tells formats apart that have the same endings."""
    found = file.read_head(len(_MAGIC))
    file.close()
    if found.startswith(_OLD_MAGIC):
        kind = "a Feather file of version 1"
    elif found.startswith(_STREAM_MAGIC):
        kind = "an Arrow stream, whose record batches cannot be found without reading all of it"
    elif found != _MAGIC:
        kind = f"not an Arrow file: it begins with {found!r}"
    else:
        return
    raise DataError(
        f"{file.path} is {kind}. Expected what pyarrow.ipc.new_file or "
        "pyarrow.feather.write_feather writes. Write it again with one of these."
    )
