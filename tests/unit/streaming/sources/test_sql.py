"""Queries: read in parts, types and nulls as stated; on SQLite, on PostgreSQL and through ADBC."""

import os
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

from memfit.errors import DataError, UsageError
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.reading import ReadOptions
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.open_data import open_data
from memfit.streaming.sources import sql as module
from memfit.streaming.sources.sql import sql
from memfit.streaming.store.cache_folder import find_cache

NUM_ROWS = 30_000
SAMPLES = "SELECT id, half, name FROM samples ORDER BY id"


@pytest.fixture(autouse=True)
def streams(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return find_cache()


def find_program(name):
    """Debian keeps PostgreSQL's programs out of the way."""
    places = [os.environ.get("PATH", ""), *map(str, Path("/usr/lib/postgresql").glob("*/bin"))]
    return shutil.which(name, path=os.pathsep.join(places))


@pytest.fixture(scope="module")
def server():
    """A PostgreSQL server of its own; connections go through a socket in its folder."""
    initdb, pg_ctl = find_program("initdb"), find_program("pg_ctl")
    if initdb is None or pg_ctl is None:
        pytest.skip("PostgreSQL is not installed here: initdb is not to be found")
    # A short path, since a socket's may have some 100 letters.
    folder = Path(tempfile.mkdtemp(prefix="memfit-pg-"))
    user = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        shutil.chown(folder, "nobody")
        user = {"user": "nobody", "cwd": folder}

    def run(*command):
        subprocess.run(command, check=True, capture_output=True, timeout=120, **user)

    data, log = str(folder / "data"), str(folder / "log")
    try:
        run(initdb, "--pgdata", data, "--auth=trust", "--username=tester", "--no-sync")
        run(
            *(pg_ctl, "--pgdata", data, "--log", log, "--wait"),
            *("--options", f"-k {folder} -c listen_addresses='' -c fsync=off"),
            "start",
        )
        yield f"host={folder} user=tester dbname=postgres"
        run(pg_ctl, "--pgdata", data, "--mode=immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def postgres(server):
    import psycopg

    with psycopg.connect(server) as connection:
        connection.execute(
            "CREATE TABLE samples AS SELECT id, id / 2.0::float8 AS half, 'n' || id AS name "
            f"FROM generate_series(0, {NUM_ROWS - 1}) AS id"
        )
        connection.execute(
            "CREATE TABLE kinds AS SELECT 1 AS i, 2.5::numeric AS n, true AS b, "
            "ARRAY[1, 2] AS w, ARRAY[0.5, 1.5]::real[] AS f UNION ALL "
            "SELECT 2, NULL, false, ARRAY[3], ARRAY[]::real[]"
        )
    return lambda **options: psycopg.connect(server, **options)


@pytest.fixture
def sqlite(tmp_path):
    path = tmp_path / "data.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE samples (id INTEGER, half REAL, name TEXT)")
        connection.executemany(
            "INSERT INTO samples VALUES (?, ?, ?)",
            ((i, i / 2, f"n{i}") for i in range(NUM_ROWS)),
        )
    connection.close()
    return path


def check_samples(source):
    found = source.read(0, source.num_rows)
    ids = np.arange(NUM_ROWS)
    assert found["id"].dtype.kind == "i"
    assert np.array_equal(found["id"], ids)
    assert np.array_equal(found["half"], ids / 2)
    assert found["name"].tolist() == [f"n{i}" for i in range(NUM_ROWS)]


def read_values(*values, connection=None):
    """A table with one column, read."""
    connection = connection or sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (v)")
    connection.executemany("INSERT INTO t VALUES (?)", [(one,) for one in values])
    try:
        source, _ = open_data(sql("SELECT v FROM t", connection))
        return source.read(0, source.num_rows)["v"]
    finally:
        connection.close()


def test_sqlite_is_read_whole_and_its_connection_left_open(sqlite):
    connection = sqlite3.connect(sqlite)

    source, _ = open_data(sql(SAMPLES, connection))

    check_samples(source)
    assert connection.execute("SELECT 1").fetchone() == (1,)
    connection.close()


def test_rows_come_in_parts(sqlite, monkeypatch):
    sizes = []

    class Cursor(sqlite3.Cursor):
        def fetchmany(self, size):
            sizes.append(size)
            return super().fetchmany(size)

        def fetchall(self):
            raise AssertionError("the whole result in memory")

    class Connection(sqlite3.Connection):
        def cursor(self):
            return super().cursor(Cursor)

    check_samples(open_data(sql(SAMPLES, lambda: Connection(sqlite)))[0])

    assert len(sizes) == 3
    assert max(sizes) * 3 <= module._CHUNK_VALUES


def test_a_connection_made_for_the_query_is_closed(sqlite):
    made = []

    def connect():
        made.append(sqlite3.connect(sqlite))
        return made[0]

    check_samples(open_data(sql(SAMPLES, connect))[0])

    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        made[0].execute("SELECT 1")


def test_parameters_and_rows_by_name(sqlite):
    connection = sqlite3.connect(sqlite)
    connection.row_factory = sqlite3.Row

    source, layout = open_data(
        sql("SELECT id, half FROM samples WHERE id < ?", connection, [7]), ReadOptions(label="half")
    )

    assert source.num_rows == 7
    assert layout.parts == ("id", "half")
    connection.close()


def test_a_stream_of_a_query_goes_on_in_another_run(sqlite):
    def make_loader():
        rows = sql("SELECT id, half FROM samples ORDER BY id", lambda: sqlite3.connect(sqlite))
        return Loader(
            *open_data(rows, ReadOptions(label="half")), LoaderSettings(64, 3_500_000, seed=1)
        )

    whole = [x["id"] if isinstance(x, dict) else x for x, _ in make_loader().run()]
    before = make_loader()
    batches = before.run()
    first = [next(batches)[0] for _ in range(100)]
    state = before.state().to_dict()
    batches.close()

    after = make_loader()
    after.restore(state)

    rows = np.concatenate([*first, *(x for x, _ in after.run())])
    assert np.array_equal(rows, np.concatenate(whole))


def test_the_kind_of_a_column_is_that_of_its_first_rows():
    assert read_values(1, 2).tolist() == [1, 2]
    assert read_values(1, 2.5, None).tolist()[:2] == [1.0, 2.5]
    assert np.isnan(read_values(1, 2.5, None)[2])
    assert read_values("a", "bcd").tolist() == ["a", "bcd"]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([1, None], r"Row 1 of the query 'SELECT v FROM t' has NULL in 'v'.*COALESCE\(v, 0\)"),
        (["a", None], r"texts have no value for it.*COALESCE\(v, ''\)"),
        ([None, None], "is NULL in all of the first 2 rows"),
        ([1, "a"], "'v' of the query .* holds int and str"),
        ([b"1"], "holds bytes"),
        ([*range(70_000), 0.5], r"Row 70000 .* has '0.5' in 'v'; the column has integers"),
        ([], r"the query 'SELECT v FROM t' has no rows"),
    ],
)
def test_values_that_no_column_can_hold_are_refused_by_their_row(values, says, streams):
    with pytest.raises(DataError, match=says):
        read_values(*values)

    assert list(streams.iterdir()) == []


def test_an_error_of_the_database_passes_with_the_query(sqlite):
    with pytest.raises(sqlite3.OperationalError, match="no such table") as caught:
        open_data(sql("SELECT * FROM sample", lambda: sqlite3.connect(sqlite)))

    assert caught.value.__notes__ == ["memfit.stream was reading the query 'SELECT * FROM sample'."]


def test_what_is_no_query_is_refused(sqlite):
    connect = lambda: sqlite3.connect(sqlite)  # noqa: E731

    with pytest.raises(UsageError, match=r"A query must be SQL text.*Received: ''"):
        sql("", connect)
    with pytest.raises(UsageError, match=r"Cannot query a str\. Expected a connection"):
        sql(SAMPLES, "sqlite:///data.db")
    with pytest.raises(UsageError, match=r"returned a int\. Expected a connection"):
        open_data(sql(SAMPLES, lambda: 3))
    with pytest.raises(UsageError, match=r"it gives no rows\. Expected a SELECT"):
        open_data(sql("CREATE TABLE other (a)", connect))
    with pytest.raises(UsageError, match=r"are called 'id'.*a\.id AS a_id"):
        open_data(sql("SELECT a.id, b.id FROM samples a JOIN samples b", connect))


@pytest.mark.parametrize("autocommit", [False, True])
def test_postgres_is_read_through_a_cursor_on_the_server(postgres, autocommit):
    with postgres(autocommit=autocommit) as connection:
        cursors = []
        make = connection.cursor
        connection.cursor = lambda *args, **options: cursors.append(args) or make(*args, **options)

        source, _ = open_data(sql(SAMPLES, connection))

    check_samples(source)
    assert cursors == [("memfit",)]


def test_kinds_of_postgres(postgres):
    from psycopg.rows import dict_row

    query = sql("SELECT * FROM kinds ORDER BY i", lambda: postgres(row_factory=dict_row))

    found = open_data(query)[0].read(0, 2)

    assert found["i"].tolist() == [1, 2]
    assert found["n"][0] == 2.5
    assert np.isnan(found["n"][1])
    assert found["b"].tolist() == [True, False]
    assert isinstance(found["w"], Ragged)
    assert found["w"].pad().tolist() == [[1, 2], [3, 0]]
    assert found["w"].values.dtype == np.int64
    assert found["f"].pad().tolist() == [[0.5, 1.5], [0, 0]]


def test_a_postgres_server_that_goes_away_is_reported_and_leaves_nothing(postgres, streams):
    import psycopg

    # The query ends its own connection after some rows.
    query = (
        "SELECT id, CASE WHEN id = 29000 THEN pg_terminate_backend(pg_backend_pid()) END "
        "IS NULL AS ok FROM samples ORDER BY id"
    )

    with pytest.raises(psycopg.OperationalError) as caught:
        open_data(sql(query, postgres))

    assert "memfit.stream was reading" in caught.value.__notes__[0]
    assert list(streams.iterdir()) == []


def test_adbc_gives_arrow(sqlite):
    adbc = pytest.importorskip("adbc_driver_sqlite.dbapi")

    with adbc.connect(str(sqlite)) as connection:
        check_samples(open_data(sql(SAMPLES, connection))[0])
        with pytest.raises(DataError, match=r"'v' of the query .* has 1 null, and int64 has no"):
            open_data(sql("SELECT 1 AS v UNION ALL SELECT NULL", connection))
