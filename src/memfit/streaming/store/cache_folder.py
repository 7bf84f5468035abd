"""The cache of streams on disk: where it is, how large it may get, and what goes first."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from memfit.errors import DataError
from memfit.streaming.store.atomic_folder import find_abandoned, find_size
from memfit.streaming.store.leases import find_used, hold_gate
from memfit.units import format_size

# Of what is free on the disk and what the cache takes, so much may be its own.
_MOST_SHARE = 0.8
# What a stream of rows that cannot be found again holds locked: it is removed with the stream.
ONCE = "in-use"
ADVICE = "Set XDG_CACHE_HOME to a folder on a larger disk, or free some room"


def find_cache() -> Path:
    """Returns the folder that holds all that was spooled."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "memfit" / "streams"


class DiskRoom:
    """Room in the cache for the rows of one stream; others make room, the oldest first.

    Args:
        name: What to call the data in messages.
        advice: What else to do if it does not fit, such as `"give less"`.
    """

    def __init__(self, name: str, advice: str = "") -> None:
        self._name = name
        self._advice = f"{ADVICE}, or {advice}" if advice else ADVICE
        self._cache = find_cache()
        self._taken_bytes = 0.0
        self._others_bytes = sum(map(find_size, _find_folders(self._cache)))
        self._most_bytes = _MOST_SHARE * (self._free_bytes() + self._others_bytes)

    def take(self, size_bytes: float) -> None:
        """Removes what was not used for longest until so many bytes more fit.

        Raises:
            DataError: They do not fit.
        """
        self._make(size_bytes)
        self._taken_bytes += size_bytes

    def check(self, total_bytes: float) -> None:
        """Does the same for all bytes before the first is written."""
        self._make(total_bytes)

    def _make(self, size_bytes: float) -> None:
        needed_bytes = self._taken_bytes + size_bytes
        while True:
            left_bytes = min(
                self._most_bytes - self._others_bytes, self._taken_bytes + self._free_bytes()
            )
            if needed_bytes <= left_bytes:
                return
            if not self._remove_oldest():
                raise DataError(
                    f"The cache is too small for {self._name}: {format_size(needed_bytes)} are "
                    f"needed, and {format_size(max(left_bytes, 0))} are left in {self._cache}. "
                    f"Streams may take {_MOST_SHARE:.0%} of the free space there, and "
                    f"everything unused has been removed. {self._advice}."
                )

    def _free_bytes(self) -> int:
        existing = next(one for one in (self._cache, *self._cache.parents) if one.exists())
        return shutil.disk_usage(existing).free

    def _remove_oldest(self) -> bool:
        with contextlib.suppress(OSError), hold_gate(self._cache):
            for left in (*find_abandoned(self._cache), *self._cache.glob(".*.removed")):
                shutil.rmtree(left, ignore_errors=True)
            used = find_used(self._cache)
            unused = [
                one
                for one in _find_folders(self._cache)
                if one.name not in used and not (one / ONCE).exists()
            ]
            if not unused:
                return False
            oldest = min(unused, key=lambda one: one.stat().st_mtime_ns)
            self._others_bytes -= find_size(oldest)
            # In one step: from now on nobody finds it.
            removed = oldest.rename(oldest.with_name(f".{oldest.name}.removed"))
            shutil.rmtree(removed, ignore_errors=True)
            return True
        return False


def _find_folders(cache: Path) -> Iterator[Path]:
    """Gives the complete folders of the cache."""
    if cache.exists():
        yield from (one for one in cache.iterdir() if not one.name.startswith("."))
