"""Parquet files: their columns, read a row group at a time.

Categorical columns come as numbers; `stream.categories` says what these stand for.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from memfit.errors import DataError
from memfit.streaming.data.reading import join_values, pick
from memfit.streaming.data.source import Column, Values
from memfit.streaming.files.optional_packages import load
from memfit.streaming.files.remote import RemotePath
from memfit.streaming.sources import arrow_tables
from memfit.streaming.sources.arrow_tables import ArrowFile
from memfit.streaming.sources.row_groups import RowGroupSource, edges_of

# Columns that are decoded together: enough to keep all cores at work, and little to hold.
_CHUNK_BYTES = 4_000_000
# Rows of lists that are decoded together: how lists are cut takes several times their values.
_STEP_BYTES = 500_000
# What decoding takes, relative to what comes out of it: measured, with what the allocator keeps.
_DECODING = 6
_DECODING_LISTS = 4
# Lists come in many small parts, of which the allocator keeps more than there ever are at a time.
_KEPT_BYTES = 32_000_000
_KEPT = 32
# What pyarrow remembers of each column of each row group while a file is open: measured.
_INDEX_BYTES = 1250


class ParquetSource(ArrowFile):
    """The rows of a Parquet file.

    Args:
        path: Where it is.
        columns: The columns to read; all of them if `None`.

    Raises:
        DataError: It cannot be read, or holds what cannot be streamed.
    """

    a_kind = "a Parquet file"
    kinds = "Parquet files"

    def __init__(self, path: Path | RemotePath, columns: Sequence[str] | None = None) -> None:
        super().__init__(path)
        with self._reading("its footer"):
            reader = self._open()
            metadata, fields = reader.metadata, reader.schema_arrow
        names = pick(columns, fields.names, str(path))
        sizes = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
        # Some writers leave row groups without rows.
        self._numbers = [at for at, size in enumerate(sizes) if size > 0]
        if not self._numbers:
            raise DataError(f"{path} has no rows. Leave it out, or write it again.")
        places = _find_leaves(metadata, fields.names)
        schema = [
            arrow_tables.describe_field(
                fields.field(name), str(path), _mean_length(metadata, places.get(name, ()))
            )
            for name in names
        ]
        _check_nulls(metadata, places, schema, str(path))
        self._chunks = _cut_columns(schema, max(sizes))
        scratch_bytes = max(_decoding_bytes(one, max(sizes)) for one in self._chunks)
        self.held_bytes = _INDEX_BYTES * metadata.num_row_groups * metadata.num_columns
        groups = edges_of([one for one in sizes if one > 0])
        RowGroupSource.__init__(self, tuple(schema), groups, scratch_bytes + self.held_bytes)
        self.schema = tuple(self._find_categories(fields.field(one.name), one) for one in schema)

    def decode(self, group: int) -> Iterator[tuple[str, Values]]:
        """Gives the columns of a row group, decoded a few at a time."""
        by_name = {one.name: one for one in self.schema}
        number = self._numbers[group]
        where = f"{self._file.path}, row group {number},"
        for chunk in self._chunks:
            if _is_nested(chunk[0]):
                yield chunk[0].name, self._decode_lists(by_name[chunk[0].name], number, where)
                continue
            table = self._read([one.name for one in chunk], number)
            for name in table.column_names:
                yield name, arrow_tables.to_values(table.column(name), by_name[name], where)
            del table  # before the next is decoded

    def _decode_lists(self, column: Column, number: int, where: str) -> Values:
        """A column of lists, some rows at a time."""
        step_rows = max(1, int(_STEP_BYTES / max(column.row_bytes, 1)))
        with self._opening, self._reading(f"row group {number}"):
            batches = self._open().iter_batches(
                step_rows, row_groups=[number], columns=[column.name], use_threads=False
            )
            parts = [arrow_tables.to_values(one.column(0), column, where) for one in batches]
        return join_values(parts)

    def _read(self, names: Sequence[str], number: int) -> Any:
        # A reader is not meant for several threads; its own decode the columns.
        with self._opening, self._reading(f"row group {number}"):
            return self._open().read_row_group(number, columns=list(names), use_threads=True)

    def _open(self) -> Any:
        if self._reader is None:
            parquet = load("pyarrow.parquet", self.kinds, "parquet")
            path = self._file.path
            # What is buffered ahead is not bounded: https://github.com/apache/arrow/issues/39808
            self._reader = parquet.ParquetFile(
                path if isinstance(path, Path) else path.open_file(),
                pre_buffer=False,
                page_checksum_verification=True,
            )
        return self._reader

    def _find_categories(self, field: Any, column: Column) -> Column:
        """Reads a categorical column once: each row group may have other categories."""
        pyarrow = self._pyarrow
        if not pyarrow.types.is_dictionary(field.type):
            return column
        found: dict[str, None] = {}
        for number in self._numbers:
            for chunk in self._read([column.name], number).column(column.name).chunks:
                found.update(dict.fromkeys(map(str, chunk.dictionary.to_pylist())))
        return arrow_tables.with_categories(column, pyarrow.array(list(found), pyarrow.string()))


def open_file(path: Path | RemotePath, columns: Sequence[str] | None = None) -> ParquetSource:
    """Returns the rows of a Parquet file."""
    return ParquetSource(path, columns)


def _find_leaves(metadata: Any, names: Sequence[str]) -> dict[str, list[int]]:
    """The numbers of the stored columns behind each column; names may have dots themselves."""
    known = set(names)
    found: dict[str, list[int]] = {}
    for at in range(metadata.num_columns):
        steps = metadata.schema.column(at).path.split(".")
        prefixes = (".".join(steps[:number]) for number in range(len(steps), 0, -1))
        name = next((one for one in prefixes if one in known), None)
        if name is not None:
            found.setdefault(name, []).append(at)
    return found


def _mean_length(metadata: Any, leaves: Sequence[int]) -> float:
    """Values of a row on average; of flat columns this is 1."""
    if not leaves:
        return 1.0
    groups = (metadata.row_group(at) for at in range(metadata.num_row_groups))
    num_values = sum(int(one.column(leaves[0]).num_values) for one in groups)
    return num_values / max(int(metadata.num_rows), 1)


def _check_nulls(
    metadata: Any, leaves: dict[str, list[int]], schema: Sequence[Column], where: str
) -> None:
    """Looks into the statistics: what is refused later would end a training."""
    # An empty sequence counts as a null there.
    strict = [one for one in schema if not (one.is_ragged or arrow_tables.holds_floats(one))]
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for column in strict:
            for leaf in leaves.get(column.name, ()):
                known = group.column(leaf).statistics
                if known is not None and known.has_null_count and known.null_count:
                    place = f"{where}, row group {number},"
                    arrow_tables.refuse_nulls(column, place, known.null_count)


def _cut_columns(schema: Sequence[Column], num_rows: int) -> list[list[Column]]:
    chunks: list[list[Column]] = []
    for one in schema:
        is_alone = not chunks or _is_nested(one) or _is_nested(chunks[-1][0])
        if is_alone or _bytes_of([*chunks[-1], one], num_rows) > _CHUNK_BYTES:
            chunks.append([])
        chunks[-1].append(one)
    return chunks


def _is_nested(column: Column) -> bool:
    return column.is_ragged or bool(column.shape)


def _decoding_bytes(chunk: Sequence[Column], num_rows: int) -> int:
    size = _bytes_of(chunk, num_rows)
    if not _is_nested(chunk[0]):
        return _DECODING * size
    return _DECODING_LISTS * size + min(_KEPT * size, _KEPT_BYTES)


def _bytes_of(columns: Sequence[Column], num_rows: int) -> int:
    return int(np.ceil(sum(one.row_bytes for one in columns) * num_rows))
