"""CSV and TSV files, compressed or not: read once, and from then on at any row.

The first line has the names of the columns. Their types are those of the first part of the file;
integers become floats if fractions come later. A missing number is NaN in a column of floats
and refused in one of integers; a missing text is `""`.
"""

import contextlib
import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from memfit.errors import DataError
from memfit.streaming.data.source import Source, Values
from memfit.streaming.files.local import DataFile
from memfit.streaming.files.optional_packages import load
from memfit.streaming.files.remote import RemoteFile, RemotePath
from memfit.streaming.store.spool import make_key, spool

_COMPRESSION = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
# How much is parsed at a time, and types are inferred from; a line has to fit.
_BLOCK_BYTES = 1 << 20
_MOST_BLOCK_BYTES = 1 << 28
_ROW = re.compile(r"Row #(\d+)")
_CONVERSION = re.compile(r"In CSV column #(\d+): .*error to (\w+): invalid value '(.*)'", re.DOTALL)
_TOO_LONG = "straddl"


def open_file(path: Path | RemotePath) -> Source:
    """Returns the rows of a file.

    Raises:
        DataError: A line cannot be read: with its number.
    """
    delimited = CsvFile(path)
    file = DataFile(path) if isinstance(path, Path) else RemoteFile(path)
    while True:
        try:
            return spool(
                delimited.read(),
                make_key([file], "delimited", delimited.delimiter),
                name=path.name,
                check=file.check,
            )
        except _AgainError as again:
            again.adapt()


class _AgainError(Exception):
    """A file has to be read again, in another way.

    Args:
        adapt: Changes how it is read.
    """

    def __init__(self, adapt: Callable[[], None]) -> None:
        super().__init__()
        self.adapt = adapt


class CsvFile:
    """How a file is read.

    Args:
        path: The file.
    """

    def __init__(self, path: Path | RemotePath) -> None:
        self._arrow = load("pyarrow", "CSV files", "csv")
        self._reader = load("pyarrow.csv", "CSV files", "csv")
        self._path = path
        name = Path(path.name.lower())
        self._compression = _COMPRESSION.get(name.suffix)
        plain = name.with_suffix("") if self._compression else name
        self.delimiter = "\t" if plain.suffix == ".tsv" else ","
        self._block_bytes = _BLOCK_BYTES
        self._types: dict[str, Any] = {}

    def read(self) -> Iterator[Mapping[str, Values]]:
        """Gives the rows, a block at a time."""
        num_rows = 0
        with self._explaining():
            with contextlib.closing(self._open()) as first:
                names = self._check_names(first.schema.names)
                for field in first.schema:
                    self._check_type(field)
            with contextlib.closing(self._open()) as reader:
                for batch in reader:
                    for name, column in zip(names, batch.columns, strict=True):
                        self._check_nulls(name, column, num_rows)
                    num_rows += len(batch)
                    yield {
                        name: column.to_numpy(zero_copy_only=False)
                        for name, column in zip(names, batch.columns, strict=True)
                    }

    def _open(self) -> Any:
        return self._reader.open_csv(
            self._open_bytes(),
            # Several threads would not say which row is wrong.
            read_options=self._reader.ReadOptions(use_threads=False, block_size=self._block_bytes),
            parse_options=self._reader.ParseOptions(
                delimiter=self.delimiter, newlines_in_values=True
            ),
            convert_options=self._reader.ConvertOptions(column_types=self._types),
        )

    def _check_names(self, names: list[str]) -> list[str]:
        if all(_is_number(one) for one in names):
            raise DataError(
                f"{self._path} has no header: it begins with {self.delimiter.join(names[:5])!r}. "
                "Expected a line with the names of the columns. Add it at the top."
            )
        twice = sorted({one for one in names if names.count(one) > 1})
        if twice:
            raise DataError(
                f"{self._path} has several columns called {', '.join(map(repr, twice))}. Give each "
                "its own name."
            )
        return names

    def _check_type(self, field: Any) -> None:
        types = self._arrow.types
        if types.is_null(field.type):  # nothing in the first part: the only type that can miss
            self._types[field.name] = self._arrow.float64()
        elif types.is_binary(field.type):
            raise DataError(
                f"Column {field.name!r} of {self._path} is not UTF-8 text. Convert the file, such "
                "as with iconv -t UTF-8."
            )

    def _check_nulls(self, name: str, column: Any, num_rows: int) -> None:
        types = self._arrow.types
        has_nan = types.is_floating(column.type) or types.is_temporal(column.type)
        if column.null_count == 0 or has_nan:
            return
        row = num_rows + column.is_null().to_pylist().index(True)
        raise DataError(
            f"{self._where(row + 2)}: column {name!r} has no value. Its type is {column.type}, "
            "which has no NaN. Fill it in, leave the line out, or write the column as "
            "floats (1.0)."
        )

    @contextlib.contextmanager
    def _explaining(self) -> Iterator[None]:
        """Says file and line of what cannot be read."""
        try:
            yield
        except self._arrow.ArrowInvalid as error:
            text = str(error)
            if _TOO_LONG in text and self._block_bytes < _MOST_BLOCK_BYTES:
                raise _AgainError(self._take_larger_blocks) from None
            found = _ROW.search(text)
            where = str(self._path) if found is None else self._where(int(found[1]))
            conversion = _CONVERSION.search(text)
            if conversion is not None:
                self._explain_conversion(where, *conversion.groups())
            reason = text.removeprefix("CSV parse error: ").removeprefix(f"{_row(found)}: ")
            raise DataError(
                f"{where} cannot be read: {reason[:200]}. Correct the line or leave it out."
            ) from None
        except (OSError, EOFError) as error:
            raise DataError(
                f"{self._path} cannot be read: {error}. It may be truncated or damaged: write or "
                "copy it again."
            ) from error

    def _explain_conversion(self, where: str, index: str, kind: str, value: str) -> None:
        with contextlib.closing(self._open()) as reader:
            name = reader.schema.names[int(index)]
        if kind == "int64" and _is_number(value):
            raise _AgainError(lambda: self._types.update({name: self._arrow.float64()})) from None
        raise DataError(
            f"{where}: {value[:40]!r} in column {name!r} is not {kind}, the type in the first part "
            "of the file. Correct it, or leave the line out."
        ) from None

    def _take_larger_blocks(self) -> None:
        self._block_bytes *= 16

    def _where(self, record: int) -> str:
        """File and line of a record, the names being the first; lines may be empty or go on."""
        line: int | None = None
        unknown = contextlib.suppress(csv.Error, ValueError, OSError, StopIteration)
        with unknown, self._open_text() as text:
            reader = csv.reader(text, delimiter=self.delimiter)
            found = (reader.line_num for values in reader if values)
            line = next(number for at, number in enumerate(found, start=1) if at == record)
        return f"{self._path}, " + (f"row {record}" if line is None else f"line {line}")

    def _open_text(self) -> IO[str]:
        return io.TextIOWrapper(io.BufferedReader(self._open_bytes()), newline="")

    def _open_bytes(self) -> Any:
        if isinstance(self._path, RemotePath):
            return self._path.open_stream(self._compression)
        return self._arrow.input_stream(str(self._path), compression=self._compression)


def _row(found: re.Match[str] | None) -> str:
    return "" if found is None else found[0]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
