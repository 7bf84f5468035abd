"""Every kind of source: does it keep its least budget, and does it resume where it stood?"""

import itertools
import json
import sqlite3
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from stream_data import PIXELS
from stream_peers import BATCH, make_grain, make_iterable, make_mosaic, make_tfrecord

# Batches of the rows that are resumed: few rows, so smaller ones.
_RESUMED_BATCH = 64


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of source.

    Attributes:
        find: Returns what a user gives to `memfit.stream`, for a folder.
        data: What must be written.
        asked: What they ask besides.
        is_slow: Whether opening it reads all rows, each time anew or as pictures.
    """

    find: Callable[[Path], Any]
    data: tuple[str, ...]
    asked: dict[str, Any]
    is_slow: bool = False


class Rows:
    """An object that gives rows by their number.

    Args:
        folder: Where the arrays are.
    """

    def __init__(self, folder: Path) -> None:
        self.x, self.y = (np.load(folder / name, mmap_mode="r") for name in ("x.npy", "y.npy"))

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: int) -> Any:
        return self.x[index], self.y[index]


def make_query(folder: Path) -> Any:
    """Returns a query for all rows."""
    from memfit.streaming.sources.sql import sql

    return sql("SELECT * FROM samples ORDER BY y", lambda: sqlite3.connect(folder / "data.db"))


def load_hugging_face(folder: Path) -> Any:
    """Returns a dataset."""
    import datasets

    return datasets.load_from_disk(folder / "hf")


def generate(folder: Path) -> Any:
    """Returns a function that gives rows one by one."""
    rows = Rows(folder)
    return lambda: (rows[index] for index in range(len(rows)))


def _named(name: str, *data: str, is_slow: bool = False, **asked: Any) -> Kind:
    data = data or (name.removeprefix("data."),)
    return Kind(lambda folder: folder / name, data, asked, is_slow)


_MATRIX = {"label": "y", "features": "matrix"}
_PICTURES = {"image_size": (PIXELS, PIXELS)}
KINDS = {
    ".npy": Kind(lambda one: (one / "x.npy", one / "y.npy"), ("npy",), {}),
    "ingested": _named("store", "npy", "store"),
    "Parquet": _named("data.parquet"),
    "Arrow": _named("data.arrow"),
    "HDF5": _named("data.h5", "hdf5"),
    "Zarr": _named("data.zarr"),
    "TFRecord": _named("data.tfrecord"),
    "CSV": _named("data.csv", **_MATRIX),
    "SQL": Kind(make_query, ("sqlite",), _MATRIX, is_slow=True),
    "HF datasets": Kind(load_hugging_face, ("hf",), {}),
    "objects": Kind(Rows, ("npy",), {}),
    "generators": Kind(generate, ("npy",), {}, is_slow=True),
    "pictures": _named("pictures", is_slow=True, **_PICTURES),
    "tar": _named("data.tar", "pictures", "tar", is_slow=True, label="cls", **_PICTURES),
}


def open_kind(name: str, folder: Path) -> Any:
    """Returns a source and its layout."""
    from memfit.streaming.data.reading import ReadOptions
    from memfit.streaming.open_data import open_data

    kind = KINDS[name]
    return open_data(kind.find(folder), ReadOptions(**kind.asked))


def say_idle(text: str = "") -> None:
    """Tells that all is imported, and waits."""
    print(f"idle {text}", flush=True)
    sys.stdin.readline()


def measure_least(folder: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """Reads an epoch with the least budget that memfit names for the source."""
    from memfit.streaming.loader.loader import Loader
    from memfit.streaming.loader.settings import LoaderSettings
    from memfit.streaming.order.shuffle_plan import gather_facts, least_budget_bytes

    opened = open_kind(wanted["case"], folder)
    least = least_budget_bytes(gather_facts(opened[0], BATCH, shuffles=True))
    say_idle(str(least))
    loader = Loader(*opened, LoaderSettings(BATCH, least, seed=1))
    num_rows = sum(len(y) for _, y in loader.run())
    return {"least_bytes": least, "rows": num_rows, "expected": opened[0].num_rows}


def measure_resume(folder: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """Takes states at random points of two epochs; each time a stream made anew goes on there."""
    from memfit.streaming.loader.loader import Loader
    from memfit.streaming.loader.settings import LoaderSettings
    from memfit.streaming.order.shuffle_plan import gather_facts, least_budget_bytes

    def make() -> Loader:
        opened = open_kind(wanted["case"], folder)
        least = least_budget_bytes(gather_facts(opened[0], _RESUMED_BATCH, shuffles=True))
        return Loader(*opened, LoaderSettings(_RESUMED_BATCH, 2 * least, seed=1))

    before = make()
    rng = np.random.default_rng(3)
    points = sorted(rng.integers(0, 2 * len(before) - 1, wanted["points"]).tolist())
    used: list[Any] = []
    states: list[tuple[int, str]] = []
    for _ in range(2):
        for batch in before.run():
            again = points.count(len(used))
            used.append(ids_of(batch))
            states += [(len(used), json.dumps(before.state().to_dict()))] * again
    compared = Compared()
    for stop, state in states:
        began = time.perf_counter()
        after = make()
        opened_s = time.perf_counter() - began
        began = time.perf_counter()
        after.restore(json.loads(state))
        batches = after.run()
        first = next(batches)
        took_s = time.perf_counter() - began
        start = stop // len(before) * len(before)
        got = [*used[start:stop], ids_of(first), *map(ids_of, batches)]
        compared.add(got, used[start : start + len(before)], took_s, opened_s)
    return compared.figures()


def ids_of(batch: Any) -> Any:
    """Returns a number for each row: its label, or a checksum of a picture."""
    x, y = batch
    return np.array([zlib.crc32(row) for row in x]) if np.ndim(x) == 4 else np.asarray(y)


class Compared:
    """What came of resuming, counted over all points."""

    def __init__(self) -> None:
        self._lost = self._twice = self._moved = 0
        self._times_s: list[float] = []
        self._openings_s: list[float] = []

    def add(
        self, got: list[Any], expected: list[Any], took_s: float, opened_s: float = 0.0
    ) -> None:
        """Counts one point, at which the epoch should have been as expected."""
        found, whole = np.concatenate(got), np.concatenate(expected)
        self._lost += len(np.setdiff1d(whole, found))
        self._twice += len(found) - len(np.unique(found)) - (len(whole) - len(np.unique(whole)))
        self._moved += not np.array_equal(found, whole)
        self._times_s.append(took_s)
        self._openings_s.append(opened_s)

    def figures(self) -> dict[str, Any]:
        """Returns the sums, and times to open the data and from there to the next batch."""
        return {
            "points": len(self._times_s),
            "lost": self._lost,
            "twice": self._twice,
            "moved": self._moved,
            "opening_s": float(np.median(self._openings_s)),
            "median_s": float(np.median(self._times_s)),
            "worst_s": max(self._times_s),
        }


# ---- peers that can resume: each begins a pass, perhaps from a state, and tells its state


def resume_tf_data(folder: Path) -> tuple[Any, Any]:
    """An iterator is saved as a checkpoint, its buffer with it."""
    import tensorflow as tf

    batches = make_tfrecord(folder)

    def begin(state: Any) -> Iterator[Any]:
        iterator = iter(batches)
        if state is not None:
            tf.train.Checkpoint(iterator=iterator).read(state)
        return iterator

    return begin, lambda iterator: tf.train.Checkpoint(iterator=iterator).write(
        str(folder / f"saved-{time.monotonic_ns()}")
    )


def resume_grain(folder: Path) -> tuple[Any, Any]:
    """An iterator has a state."""

    def begin(state: Any) -> Any:
        iterator = iter(make_grain(folder, seed=1))
        if state is not None:
            iterator.set_state(state)
        return iterator

    return begin, lambda iterator: iterator.get_state()


class Stateful:
    """Batches of something that has the state itself, not its iterator.

    Args:
        made: What has it.
        batches: Gives the batches.
        state: Where to begin.
    """

    def __init__(self, made: Any, batches: Callable[[], Any], state: Any) -> None:
        if state is not None:
            made.load_state_dict(state)
        self.made = made
        self._iterator = iter(batches())

    def __iter__(self) -> "Stateful":
        return self

    def __next__(self) -> Any:
        batch = next(self._iterator)
        return batch["x"], batch["y"]


def resume_hugging_face(folder: Path) -> tuple[Any, Any]:
    """A streamed dataset has a state, without what is in its buffer."""

    def begin(state: Any) -> Any:
        rows = make_iterable(folder)
        return Stateful(rows, lambda: rows.iter(BATCH), state)

    return begin, lambda iterator: iterator.made.state_dict()


def resume_mosaic(folder: Path) -> tuple[Any, Any]:
    """The loader of MosaicML has a state."""

    def begin(state: Any) -> Any:
        loader = make_mosaic(folder, 0)
        return Stateful(loader, lambda: loader, state)

    return begin, lambda iterator: iterator.made.state_dict()


PEERS = {
    "tf.data, TFRecord": (resume_tf_data, ("tfrecord",), "tensorflow"),
    "Grain": (resume_grain, ("npy",), "grain"),
    "HF datasets, streamed": (resume_hugging_face, ("hf",), "datasets"),
    "MosaicML Streaming": (resume_mosaic, ("mds",), "streaming"),
}
NO_STATE = ("Keras arrays", "torch DataLoader", "pyarrow", "Ray Data")


def measure_peer_resume(folder: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """Stops a peer at random points; what it would have gone on with is what is expected."""
    begin, save = PEERS[wanted["case"]][0](folder)
    num_batches = sum(1 for _ in begin(None))
    compared = Compared()
    for stop in np.random.default_rng(3).integers(1, num_batches, wanted["points"]).tolist():
        before = begin(None)
        used = [ids_of(next(before)) for _ in range(stop)]
        state = save(before)
        expected = [*used, *map(ids_of, before)]
        began = time.perf_counter()
        after = begin(state)
        rest = [ids_of(batch) for batch in itertools.islice(after, 1)]  # some have lost them all
        took_s = time.perf_counter() - began
        compared.add([*used, *rest, *map(ids_of, after)], expected, took_s)
    return compared.figures()
