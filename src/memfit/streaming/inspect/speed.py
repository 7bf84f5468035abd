"""How fast data streams here: measured with the loader that a training uses, without Keras."""

import contextlib
import dataclasses
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from memfit.measure.peak import Peak, read_tree_bytes
from memfit.streaming.data.layout import Layout
from memfit.streaming.data.source import Source, row_bytes
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.map_batches import count_rows
from memfit.streaming.loader.settings import LoaderSettings

# With fewer batches their variance tells little.
_LEAST_BATCHES = 30
_RESUMES = 5

Open = Callable[[], tuple[Source, Layout]]


@dataclass(frozen=True, slots=True)
class PassTiming:
    """One pass over data.

    Attributes:
        num_rows: Rows that were given.
        wall_s: How long it took.
        cpu_s: CPU seconds of all threads.
        size_bytes: What these rows take in memory.
        peak_bytes: The most memory above that of the idle process.
    """

    num_rows: int
    wall_s: float
    cpu_s: float
    size_bytes: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class StreamTiming:
    """How fast data streams.

    Attributes:
        batch_size: Rows of a batch.
        budget_bytes: The budget.
        first: The first pass, from the disk if the files were not in memory.
        second: Another pass, now that they are, if they fit.
        deff: The design effect that is expected on sorted data.
        label_deff: The same as measured on the labels: the variance of batch means relative to
            independent sampling; `None` if they are not numbers, or batches are too few.
        resume_s: From a saved state to the next batch, sources opened again; the median of some.
        is_whole: Whether the passes were whole epochs.
        load: How many processes wanted to run meanwhile; `None` where that is not known.
    """

    batch_size: int
    budget_bytes: int
    first: PassTiming
    second: PassTiming
    deff: float
    label_deff: float | None
    resume_s: float
    is_whole: bool
    load: float | None


def time_stream(open_it: Open, settings: LoaderSettings, most_s: float) -> StreamTiming:
    """Measures shuffled passes over data.

    Args:
        open_it: Opens the data; called again to measure how long it takes to resume.
        settings: Batches and budget.
        most_s: A pass that takes longer ends there.

    Raises:
        BudgetError: The budget is too small for this data.
    """
    _warm_up()
    loader = Loader(*open_it(), settings)
    idle_bytes = read_tree_bytes()
    first, second = (_pass(loader, most_s, idle_bytes) for _ in range(2))
    return StreamTiming(
        batch_size=settings.most_rows,
        budget_bytes=settings.budget_bytes,
        first=first,
        second=second,
        deff=loader.mixing.deff,
        label_deff=_measure_deff(loader, most_s),
        resume_s=_time_resume(open_it, loader),
        is_whole=second.num_rows == first.num_rows == loader.source.num_rows,
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    )


def _warm_up() -> None:
    """What is loaded or set up once is not the stream's."""
    from memfit.streaming.open_data import open_data

    list(Loader(*open_data(np.zeros((9, 2))), LoaderSettings(2, 4_000_000, seed=0)).run())


def _pass(loader: Loader, most_s: float, idle_bytes: int) -> PassTiming:
    num_rows = 0
    with Peak() as peak, contextlib.closing(loader.run()) as batches:
        wall, cpu = time.perf_counter(), time.process_time()
        for batch in batches:
            num_rows += count_rows(batch)
            if time.perf_counter() - wall > most_s:
                break
        wall_s, cpu_s = time.perf_counter() - wall, time.process_time() - cpu
        peak_bytes = max(0, peak.read() - idle_bytes)
    size_bytes = round(num_rows * row_bytes(loader.source.schema))
    return PassTiming(num_rows, wall_s, cpu_s, size_bytes, peak_bytes)


def _measure_deff(loader: Loader, most_s: float) -> float | None:
    """A pass of its own: it takes time to look at labels."""
    if not _has_plain_labels(loader):
        return None
    means, squares = [], []
    began = time.perf_counter()
    with contextlib.closing(loader.run()) as batches:
        for _, labels, *_ in batches:
            means.append(float(labels.mean(dtype=np.float64)))
            squares.append(float(np.square(labels, dtype=np.float64).mean()))
            if time.perf_counter() - began > most_s:
                break
    whole = np.array(means[:-1])  # the last batch may be smaller
    variance = np.mean(squares[:-1]) - whole.mean() ** 2 if len(means) >= _LEAST_BATCHES else 0.0
    if not variance > 0:
        return None
    return float(whole.var() / (variance / loader.settings.most_rows))


def _has_plain_labels(loader: Loader) -> bool:
    name = loader.layout.parts[1] if len(loader.layout.parts) > 1 else None
    column = next((one for one in loader.source.schema if one.name == name), None)
    return (
        column is not None
        and column.shape == ()
        and not column.is_ragged
        and column.dtype.kind in "fiub"
    )


def _time_resume(open_it: Open, loader: Loader) -> float:
    state = loader.state()
    times = []
    for number in range(_RESUMES):
        batch = len(loader) * (2 * number + 1) // (2 * _RESUMES)
        wanted = dataclasses.replace(state, epoch=1, batch=batch).to_dict()
        began = time.perf_counter()
        fresh = Loader(*open_it(), loader.settings)
        fresh.restore(wanted)
        with contextlib.closing(fresh.run()) as batches:
            next(batches)
            times.append(time.perf_counter() - began)
    return statistics.median(times)
