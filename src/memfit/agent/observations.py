"""What the hooks report while the script runs: what it makes, compiles and calls, by line."""

import gc
import sys
import time
import weakref
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from memfit.agent import gc_pause
from memfit.backends.events import Compilation
from memfit.failsafe import harmless
from memfit.record.evidence import Called, Loaded, Made, Retraced
from memfit.user_code.frames import (
    Line,
    display_path,
    find_running_line,
    is_run_by,
    is_user_file,
    user_files,
)
from memfit.user_code.own_calls import is_own_call
from memfit.user_code.statements import find_call, place_at

# Things that are made once or twice are in good order.
_LEAST_MORE = 3
# A function is traced once or twice in good order: for training and not, for the last batch.
_LEAST_TRACES = 4
# One of these is enough to ask about.
_WRITTEN_AT_ONCE = frozenset({"tape", "loader", "process"})
_LEAST_LOADED_BYTES = 16_000_000
_MOST_SITES = 4096
_TUNER = "keras_tuner"


@dataclass(slots=True)
class _Compiled:
    """All compilations of one name called at one line."""

    compiler: str
    name: str
    defined_at: str | None
    traces: int = 0
    functions: set[int] = field(default_factory=set)
    arguments: Mapping[str, str] = field(default_factory=dict)
    changed: str = ""


class Observations:
    """Counts by line of the user's code. Its methods are called inside the training."""

    def __init__(self) -> None:
        self._made: Counter[tuple[str, str, int]] = Counter()
        self._by_tuner: set[tuple[str, str, int]] = set()
        self._alive: dict[int, tuple[Any, tuple[str, str, int]]] = {}
        self._compiled: dict[tuple[str, str, Line], _Compiled] = {}
        self._called: Counter[tuple[str, str, int]] = Counter()
        self._loaded: dict[tuple[str, Line], Loaded] = {}
        self._first: dict[Any, tuple[float, int]] = {}

    @harmless
    def made(self, kind: str, thing: object) -> None:
        """Counts `thing`, and remembers weakly where it was made."""
        line = _find_line(makes=thing)
        if line is None or len(self._made) > _MOST_SITES:
            return
        site = (kind, *line)
        self._made[site] += 1
        if site not in self._by_tuner and is_run_by(sys._getframe(), _TUNER):
            self._by_tuner.add(site)
        key = id(thing)
        try:
            self._alive[key] = (weakref.ref(thing, lambda _gone: self._alive.pop(key, None)), site)
        except TypeError:  # counted only
            return

    @harmless
    def compiled(self, compilation: Compilation) -> None:
        """Counts a compilation, and notes which argument differs from the one before."""
        line = _find_line()
        if line is None or len(self._compiled) > _MOST_SITES:
            return
        is_own = compilation.file is not None and is_user_file(compilation.file)
        name = compilation.name if is_own or compilation.file is None else ""
        defined_at = (
            f"{display_path(compilation.file or '')}:{compilation.line}" if is_own else None
        )
        one = self._compiled.setdefault(
            (compilation.compiler, name, line), _Compiled(compilation.compiler, name, defined_at)
        )
        if one.traces:
            one.changed = _difference(one.arguments, compilation.arguments) or one.changed
        one.traces += 1
        one.functions.add(compilation.function_id)
        one.arguments = compilation.arguments

    @harmless
    def called(self, function: str, caller: FrameType) -> None:
        """Counts a call of `function` if `caller`, which makes it, is the user's own code."""
        file = caller.f_code.co_filename
        if is_user_file(file) and not is_own_call():
            self._called[(function, file, caller.f_lineno)] += 1

    @harmless
    def loaded(self, by: str, size_bytes: int, copied_bytes: int) -> None:
        """Notes data that is passed as complete arrays."""
        line = _find_line()
        if line is not None and size_bytes >= _LEAST_LOADED_BYTES:
            self._loaded[(by, line)] = Loaded(
                time.monotonic(), by, size_bytes, copied_bytes, *place_at(*line)
            )

    def line_of(self, thing: object) -> Line | None:
        """Returns where `thing` was made."""
        known = self._alive.get(id(thing))
        return known[1][1:] if known is not None and known[0]() is thing else None

    def find_new(self, now_t_s: float) -> Iterator[Made | Retraced | Called | Loaded]:
        """Yields what is worth writing to the recording by now."""
        alive = Counter(site for _, site in list(self._alive.values()))
        for site, made in list(self._made.items()):
            since_t_s, before = self._first.setdefault(site, (now_t_s, made))
            if made - before >= _LEAST_MORE or (site[0] in _WRITTEN_AT_ONCE and alive[site]):
                by_tuner = site in self._by_tuner
                counts = (before, made, alive[site])
                yield Made(now_t_s, since_t_s, site[0], *counts, *place_at(*site[1:]), by_tuner)
        for key, one in list(self._compiled.items()):
            since_t_s, before = self._first.setdefault(key, (now_t_s, one.traces))
            if one.traces - before >= _LEAST_TRACES:
                yield _retraced(one, key[2], now_t_s, since_t_s, before)
        for (function, file, line), calls in list(self._called.items()):
            yield Called(now_t_s, function, calls, *place_at(file, line))
        if not gc_pause.is_enabled() or not gc.get_threshold()[0] or gc.get_freeze_count():
            yield from _switches(now_t_s)
        while self._loaded:
            yield self._loaded.popitem()[1]


def _find_line(*, makes: object | None = None) -> Line | None:
    """The user's line that runs now; `None` while memfit does something for itself."""
    return None if is_own_call() else find_running_line(sys._getframe(1), makes=makes)


def _switches(now_t_s: float) -> Iterator[Called]:
    """Where the script turns the collector off. It may have done so before anything was hooked."""
    for function in ("gc.disable", "gc.set_threshold", "gc.freeze"):
        for file in user_files():
            found = find_call(file, function)
            if found is not None:
                yield Called(now_t_s, function, 1, display_path(file), found.line, found.text)


def _retraced(
    one: _Compiled, line: Line, now_t_s: float, since_t_s: float, before: int
) -> Retraced:
    place = place_at(*line)
    return Retraced(
        t_s=now_t_s,
        since_t_s=since_t_s,
        name=one.name,
        file=place.file,
        line=place.line,
        traces_before=before,
        traces=one.traces,
        functions=len(one.functions),
        statement=place.statement,
        changed=one.changed,
        compiler=one.compiler,
        defined_at=one.defined_at,
    )


def _difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """The first argument that differs, with both values."""
    if "guard" in after:  # the compiler's own words
        return after["guard"]
    for name, text in after.items():
        if name in before and before[name] != text:
            if "(object " in text:
                return f"{name}: a new {text.partition(' (object')[0]} each time"
            return f"{name}: {before[name]}, then {text}"
    return ""
