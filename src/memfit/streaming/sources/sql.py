"""`memfit.sql`: rows of a database, read once, some thousand at a time."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from memfit.errors import DataError, UsageError
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.source import Source, Values
from memfit.streaming.sources import arrow_tables
from memfit.streaming.sources.collect import noting
from memfit.streaming.store.spool_once import spool_once

# Python's values take some 60 bytes each.
_CHUNK_VALUES = 65_536
# Drivers that fetch the whole result unless a cursor has a name.
_NAMED = frozenset({"psycopg", "psycopg2"})
_NULL = type(None)
_WHOLE, _FRACTION, _BOOL, _TEXT = "integers", "floats", "booleans", "texts"
_WHOLE_ARRAY, _FRACTION_ARRAY = "arrays of integers", "arrays of floats"
_KINDS = {int: _WHOLE, float: _FRACTION, Decimal: _FRACTION, bool: _BOOL, str: _TEXT}
_ARRAYS = frozenset({_WHOLE_ARRAY, _FRACTION_ARRAY})


@dataclass(frozen=True, slots=True)
class Query:
    """A query.

    Attributes:
        text: The SQL text.
        connection: A connection, or a function that makes one.
        parameters: Values for its placeholders.
    """

    text: str
    connection: Any
    parameters: Sequence[Any] | Mapping[str, Any] = ()

    @property
    def name(self) -> str:
        """What to call it in messages."""
        text = " ".join(self.text.split())
        return f"the query {text if len(text) <= 60 else f'{text[:57]}...'!r}"

    @contextmanager
    def connected(self) -> Iterator[Any]:
        """A connection; closed at the end if it was made for this query."""
        if hasattr(self.connection, "cursor"):
            yield self.connection
            return
        made = self.connection()
        if not hasattr(made, "cursor"):
            raise UsageError(
                f"The function for {self.name} returned a {type(made).__name__}. Expected a "
                "connection, as sqlite3.connect(...) and psycopg.connect(...) return."
            )
        try:
            yield made
        finally:
            made.close()


def sql(
    text: str,
    connection: Any | Callable[[], Any],
    parameters: Sequence[Any] | Mapping[str, Any] = (),
) -> Query:
    """The rows of a query: `memfit.stream(memfit.sql("SELECT ...", connection), ...)`.

    They are read once, when the stream is made, and only some of them are in memory at a time:
    from PostgreSQL through a cursor on the server, and as Arrow from an ADBC connection. A NULL
    becomes a NaN in a column of floats and is refused in any other. Write an `ORDER BY`: without
    it a database may return the rows in another order next time, and `restore()` would refuse.

    Args:
        text: The query.
        connection: A connection of a DB-API driver, such as sqlite3 or psycopg, or of ADBC; or a
            function without arguments that makes one, which is closed afterwards.
        parameters: Values for the placeholders of the query.

    Raises:
        UsageError: This is not a query, or not a connection.

    Example:
    ```python
    connection = sqlite3.connect("data.db")
    rows = memfit.sql("SELECT x1, x2, y FROM samples ORDER BY id", connection)
    data = memfit.stream(rows, label="y", batch_size=256, shuffle=True)
    ```
    """
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"A query must be SQL text. Received: {text!r}.")
    if not hasattr(connection, "cursor") and not callable(connection):
        raise UsageError(
            f"Cannot query a {type(connection).__name__}. Expected a connection, such as "
            'sqlite3.connect("data.db"), or a function that makes one.'
        )
    return Query(text, connection, parameters)


def accepts_object(value: Any) -> bool:
    """Whether this is a query."""
    return isinstance(value, Query)


def open_object(value: Query) -> Source:
    """Returns the rows of a query.

    Raises:
        UsageError: It gives no rows, or two columns of one name.
        DataError: A column holds what cannot be streamed.
    """
    return spool_once(_read(value), name=value.name)


def _read(query: Query) -> Iterator[Mapping[str, Values]]:
    with query.connected() as connection, contextlib.closing(_open_cursor(connection)) as cursor:
        with noting(query.name):
            # Drivers differ in what stands for no parameters.
            cursor.execute(query.text, *([query.parameters] if query.parameters else []))
        if cursor.description is None:
            raise UsageError(f"Cannot stream {query.name}: it gives no rows. Expected a SELECT.")
        names = [one[0] for one in cursor.description]
        _check_names(names, query)
        if hasattr(cursor, "fetch_record_batch"):
            yield from _read_arrow(cursor, query)
        else:
            yield from _read_rows(cursor, names, query)


def _open_cursor(connection: Any) -> Any:
    if type(connection).__module__.split(".")[0] not in _NAMED:
        return connection.cursor()
    # On the server a cursor lives as long as its transaction, and with autocommit there is none.
    return connection.cursor("memfit", withhold=bool(connection.autocommit))


def _check_names(names: Sequence[str], query: Query) -> None:
    twice = next((one for one in names if list(names).count(one) > 1), None)
    if twice is not None:
        raise UsageError(
            f"Two columns of {query.name} are called {twice!r}. Give each its own name: "
            f"SELECT a.{twice} AS a_{twice}, b.{twice} AS b_{twice}."
        )


def _read_arrow(cursor: Any, query: Query) -> Iterator[Mapping[str, Values]]:
    first = 0
    with noting(query.name):
        reader = cursor.fetch_record_batch()
    columns = {
        one.name: None if _is_text(one.type) else arrow_tables.describe_field(one, query.name)
        for one in reader.schema
    }
    batches = iter(reader)
    while True:
        with noting(f"row {first} of {query.name}"):
            batch = next(batches, None)
        if batch is None:
            return
        where = f"{query.name}, from row {first} on,"
        yield {
            name: _to_text(batch.column(name).to_pylist(), name, query, first)
            if column is None
            else arrow_tables.to_values(batch.column(name), column, where)
            for name, column in columns.items()
        }
        first += batch.num_rows


def _read_rows(cursor: Any, names: Sequence[str], query: Query) -> Iterator[Mapping[str, Values]]:
    chunk_rows = max(1, _CHUNK_VALUES // len(names))
    kinds: dict[str, str] = {}
    first = 0
    while True:
        with noting(f"row {first} of {query.name}"):
            rows = cursor.fetchmany(chunk_rows)
        if not rows:
            return
        if isinstance(rows[0], Mapping):
            rows = [tuple(one.values()) for one in rows]
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        for name, values in columns.items():
            if name not in kinds:
                kinds[name] = _find_kind(values, name, query)
        yield {
            name: _to_values(values, name, kinds[name], query, first)
            for name, values in columns.items()
        }
        first += len(rows)


def _find_kind(values: Sequence[Any], name: str, query: Query) -> str:
    types = set(map(type, values)) - {_NULL}
    if types == {list}:
        steps = [step for one in values if one is not None for step in one]
        return _WHOLE_ARRAY if set(map(type, steps)) == {int} else _FRACTION_ARRAY
    found = {_KINDS.get(one) for one in types}
    if found <= {_WHOLE, _FRACTION} and found:
        return _FRACTION if _FRACTION in found else _WHOLE
    kind = next(iter(found)) if len(found) == 1 else None
    if kind is not None:
        return kind
    if not found:
        raise DataError(
            f"Column {name!r} of {query.name} is NULL in all of the first {len(values)} rows: "
            "its type is unknown. Leave it out, or name the type: "
            f"CAST({name} AS DOUBLE PRECISION)."
        )
    words = " and ".join(sorted(one.__name__ for one in types))
    raise DataError(
        f"Column {name!r} of {query.name} holds {words}. Expected numbers, text, or "
        "arrays of numbers: CAST it in the query, or leave it out."
    )


def _to_values(values: Sequence[Any], name: str, kind: str, query: Query, first: int) -> Values:
    if kind in _ARRAYS:
        return _to_sequences(values, name, kind, query, first)
    allowed = {one for one, known in _KINDS.items() if known == kind}
    if kind == _FRACTION:
        allowed |= {int, _NULL}
    if not set(map(type, values)) <= allowed:
        at = next(at for at, one in enumerate(values) if type(one) not in allowed)
        raise DataError(_refusal(values[at], name, kind, f"Row {first + at} of {query.name}"))
    if kind == _FRACTION:
        return np.array([np.nan if one is None else one for one in values], np.float64)
    dtype = {_WHOLE: np.int64, _BOOL: np.bool_, _TEXT: np.str_}[kind]
    try:
        return np.array(values, dtype)
    except OverflowError:
        raise DataError(
            f"Column {name!r} of {query.name} has integers of more than 64 bits between rows "
            f"{first} and {first + len(values)}. CAST it to floating point in the query."
        ) from None


def _to_text(values: Sequence[Any], name: str, query: Query, first: int) -> Values:
    return _to_values(values, name, _TEXT, query, first)


def _to_sequences(values: Sequence[Any], name: str, kind: str, query: Query, first: int) -> Ragged:
    """PostgreSQL's arrays: always sequences, since nothing says that all are of one length."""
    allowed = {int} if kind == _WHOLE_ARRAY else {int, float, Decimal}
    for at, one in enumerate(values):
        if not isinstance(one, list) or not set(map(type, one)) <= allowed:
            raise DataError(_refusal(one, name, kind, f"Row {first + at} of {query.name}"))
    offsets = np.concatenate(([0], np.cumsum([len(one) for one in values])))
    steps = [step for one in values for step in one]
    return Ragged(np.array(steps, np.int64 if kind == _WHOLE_ARRAY else np.float64), offsets)


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _refusal(value: Any, name: str, kind: str, where: str) -> str:
    if value is None:
        filler = {_TEXT: "''", _BOOL: "FALSE"}.get(kind, "'{}'" if kind in _ARRAYS else "0")
        return (
            f"{where} has NULL in {name!r}, and {kind} have no value for it. Fill it in the query, "
            f"COALESCE({name}, {filler}), or leave the row out, WHERE {name} IS NOT NULL."
        )
    return (
        f"{where} has {str(value)[:60]!r} in {name!r}; the column has {kind}. Expected the same in "
        "all rows: CAST it in the query."
    )
