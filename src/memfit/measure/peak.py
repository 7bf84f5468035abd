"""The most memory that this process and those it started take while something runs."""

import os
import threading
from pathlib import Path
from types import TracebackType

from memfit.measure.process import read_children, read_process

_CLEAR_REFS = Path("/proc/self/clear_refs")
_RESET_PEAK = "5"  # proc(5): resets the peak resident set size
_SAMPLE_S = 0.002


def read_tree_bytes() -> int:
    """Returns the resident memory of this process and all below it."""
    own = read_process(os.getpid())
    children = sum(one.memory.rss_bytes for one in read_children(os.getpid()))
    return (own.rss_bytes if own else 0) + children


class Peak:
    """A `with` block that measures the peak of memory inside it.

    The kernel's own high-water mark is set back at the beginning. Where it cannot be, a thread
    reads it every 2 ms. What child processes take is added as it is when asked for.

    Example:
        ```python
        with Peak() as peak:
            model.train_on_batch(x, y)
        print(peak.read())
        ```
    """

    def __init__(self) -> None:
        self._sampler: _Sampler | None = None

    def __enter__(self) -> "Peak":
        try:
            _CLEAR_REFS.write_text(_RESET_PEAK)
        except OSError:
            self._sampler = _Sampler()
            self._sampler.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._sampler is not None:
            self._sampler.stop()

    def read(self) -> int:
        """Returns the most memory since the block began."""
        children = sum(one.memory.rss_bytes for one in read_children(os.getpid()))
        if self._sampler is not None:
            return self._sampler.peak_bytes + children
        own = read_process(os.getpid())
        return (own.peak_rss_bytes or own.rss_bytes if own else 0) + children


class _Sampler(threading.Thread):
    """Looks at the resident memory again and again."""

    def __init__(self) -> None:
        super().__init__(name="memfit-peak", daemon=True)
        self.peak_bytes = 0
        self._done = threading.Event()

    def run(self) -> None:
        while True:
            own = read_process(os.getpid())
            self.peak_bytes = max(self.peak_bytes, own.rss_bytes if own else 0)
            if self._done.wait(_SAMPLE_S):
                return

    def stop(self) -> None:
        self._done.set()
        self.join()
