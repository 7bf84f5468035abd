"""Windows of rows, read ahead by a thread of their own; batches are gathered out of them.

Two windows exist at a time: one is used while the next is read, and its memory is used again for
the one after that. So the thread waits when nobody takes batches, and memory does not grow. The
batches themselves are new arrays each time, since torch and JAX go on using their memory.
"""

import queue
import threading
from collections.abc import Generator, Mapping
from dataclasses import dataclass

import numpy as np

from memfit.streaming.data.ragged import GrowingRagged, Ragged
from memfit.streaming.data.reading import read_chunks
from memfit.streaming.data.source import Array, Source, allocate, read_into
from memfit.streaming.order.buckets import BucketEpoch
from memfit.streaming.order.epoch import Epoch, Window

_AHEAD = 2


@dataclass(frozen=True, slots=True)
class LoadedWindow:
    """A window with its rows.

    Attributes:
        window: Which rows, in which order.
        arrays: The rows as they were read, and after them room for larger windows.
        ragged: The same for columns of sequences.
    """

    window: Window
    arrays: Mapping[str, Array]
    ragged: Mapping[str, Ragged]

    def gather_into(self, start: int, stop: int, into: Mapping[str, Array]) -> None:
        """Copies rows, counted in the order of the window, into arrays."""
        permutation = self.window.permutation
        for name, array in self.arrays.items():
            if permutation is None:
                into[name][...] = array[start:stop]
            else:
                # With "clip" NumPy writes straight into `out`; no index is out of range.
                np.take(array, permutation[start:stop], axis=0, out=into[name], mode="clip")

    def gather_ragged(self, start: int, stop: int) -> dict[str, Ragged]:
        """Returns rows of the columns of sequences."""
        permutation = self.window.permutation
        rows = np.arange(start, stop) if permutation is None else permutation[start:stop]
        return {name: one.take(rows) for name, one in self.ragged.items()}


def load_window(source: Source, window: Window, arrays: Mapping[str, Array]) -> LoadedWindow:
    """Reads a window, range by range, into arrays that are large enough."""
    if not any(one.is_ragged for one in source.schema):
        read_into(source, window.ranges, arrays)
        return LoadedWindow(window, arrays, {})
    return _load_ragged(source, window, arrays)


def read_windows(
    source: Source, epoch: Epoch | BucketEpoch, first: int = 0
) -> Generator[LoadedWindow, None, None]:
    """Gives the windows of an epoch from `first` on; each is valid until the next is asked for.

    The thread ends with the generator: at its end, when it is closed, and on any error. What goes
    wrong in the thread is raised here, with its own traceback.
    """
    free: queue.SimpleQueue[dict[str, Array] | None] = queue.SimpleQueue()
    ready: queue.SimpleQueue[LoadedWindow | BaseException] = queue.SimpleQueue()
    is_over = threading.Event()
    num_left = epoch.num_windows - first
    for _ in range(min(_AHEAD, num_left)):
        free.put(allocate(source.schema, epoch.largest_window))
    reader = threading.Thread(
        target=_read_ahead,
        args=(source, (epoch, first), free, ready, is_over),
        name="memfit-stream",
        daemon=True,
    )
    reader.start()
    try:
        for _ in range(num_left):
            loaded = ready.get()
            if isinstance(loaded, BaseException):
                raise loaded
            yield loaded
            free.put(dict(loaded.arrays))
    finally:
        is_over.set()
        free.put(None)
        reader.join()


def _read_ahead(
    source: Source,
    windows: tuple[Epoch | BucketEpoch, int],
    free: "queue.SimpleQueue[dict[str, Array] | None]",
    ready: "queue.SimpleQueue[LoadedWindow | BaseException]",
    is_over: threading.Event,
) -> None:
    """What the thread does. It knows nothing of the generator, so that this can be forgotten."""
    epoch, first = windows
    try:
        for index in range(first, epoch.num_windows):
            window = epoch.window(index)
            arrays = free.get()
            if arrays is None or is_over.is_set():
                return
            ready.put(load_window(source, window, arrays))
    except BaseException as error:  # noqa: BLE001  # it is raised again on the other side
        ready.put(error)


def _load_ragged(source: Source, window: Window, arrays: Mapping[str, Array]) -> LoadedWindow:
    found = {
        one.name: GrowingRagged(one.dtype, one.shape, one.mean_length, window.num_rows)
        for one in source.schema
        if one.mean_length is not None
    }
    for at, read in read_chunks(source, window.ranges):
        for name, values in read.items():
            if isinstance(values, Ragged):
                found[name].add(values)
            else:
                arrays[name][at : at + len(values)] = values
        del read, values  # before the next are read
    return LoadedWindow(window, arrays, {name: one.finish() for name, one in found.items()})
