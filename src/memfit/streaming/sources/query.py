"""`memfit.sql`: a query and the connection that answers it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from memfit.errors import UsageError


@dataclass(frozen=True, slots=True)
class Query:
    """A query.

    Attributes:
        text: In the words of SQL.
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

    They are read once, when the stream is made, and only some of them are in memory at a time: of
    PostgreSQL through a cursor on the server, and as Arrow where the connection is one of ADBC.
    A NULL among fractions is a NaN; among whole numbers and texts it is refused. Write an
    `ORDER BY`: without it a database may give the rows in another order next time, and a stream
    would not go on from a state.

    Args:
        text: The query.
        connection: A connection of a DB-API driver, such as sqlite3 or psycopg, or of ADBC; or a
            function without arguments that makes one, which is closed afterwards.
        parameters: Values for the placeholders of the query.

    Raises:
        UsageError: This is no query, or no connection.

    Example:
    ```python
    connection = sqlite3.connect("data.db")
    rows = memfit.sql("SELECT x1, x2, y FROM samples ORDER BY id", connection)
    data = memfit.stream(rows, label="y", batch_size=256, shuffle=True)
    ```
    """
    if not isinstance(text, str) or not text.strip():
        raise UsageError(f"A query is a text in the words of SQL. Received: {text!r}.")
    if not hasattr(connection, "cursor") and not callable(connection):
        raise UsageError(
            f"Cannot ask a {type(connection).__name__}. Expected a connection, such as "
            'sqlite3.connect("data.db"), or a function that makes one.'
        )
    return Query(text, connection, parameters)
