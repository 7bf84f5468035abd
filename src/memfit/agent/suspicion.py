"""Whether memory is rising now: a quick look that decides how closely to look."""

import bisect

_LEAST_RISE_BYTES = 4_000_000
_MOST_KEPT = 512


class Suspicion:
    """Compares memory now with memory half-way back to the first reading.

    Warm-up raises it for a while and then no more; a leak keeps it raised.
    """

    def __init__(self) -> None:
        self._times_s: list[float] = []
        self._held_bytes: list[int] = []
        self._first_free_bytes: int | None = None
        self._free_bytes = 0

    def add(self, t_s: float, held_bytes: int, free_bytes: int | None = None) -> None:
        """Takes a reading; `free_bytes` is what malloc keeps for later, where it was read."""
        if free_bytes is not None:
            if self._first_free_bytes is None:
                self._first_free_bytes = free_bytes
            self._free_bytes = free_bytes
        self._times_s.append(t_s)
        self._held_bytes.append(held_bytes)
        if len(self._times_s) > _MOST_KEPT:
            del self._times_s[1:-1:2], self._held_bytes[1:-1:2]

    @property
    def is_raised(self) -> bool:
        """Whether memory has risen since half-way."""
        if not self._times_s:
            return False
        half_way_s = (self._times_s[0] + self._times_s[-1]) / 2
        then = max(bisect.bisect_right(self._times_s, half_way_s) - 1, 0)
        return self._held_bytes[-1] - self._held_bytes[then] >= _LEAST_RISE_BYTES

    @property
    def kept_bytes(self) -> int:
        """By how much that has risen which malloc keeps for later."""
        return self._free_bytes - (self._first_free_bytes or 0)

    @property
    def risen_bytes(self) -> int:
        """By how much memory has risen since the first reading."""
        return self._held_bytes[-1] - self._held_bytes[0] if self._held_bytes else 0
