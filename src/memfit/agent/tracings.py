"""Looks for functions that the script has traced or compiled again and again."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memfit.backends import BACKEND_NAMES, CompiledFunction, get_backend
from memfit.measure.user_code import as_typed, is_user_file
from memfit.record.entries import Retraced

# A function is traced once or twice in good order: for training and not, for the last batch.
_LEAST_MORE = 4


@dataclass(frozen=True, slots=True)
class _Place:
    """All functions made at one line."""

    example: CompiledFunction
    traces: int
    functions: int


class Tracings:
    """Compares how often functions have been traced with how often at first."""

    def __init__(self) -> None:
        self._before: dict[tuple[str | None, int | None], int] | None = None
        self._before_t_s = 0.0

    def look(self, now_t_s: float, loaded: Sequence[str]) -> list[Retraced]:
        """Returns the functions that were traced again since the first look.

        Args:
            now_t_s: When.
            loaded: Names of the modules that are loaded.
        """
        places = _by_place(
            function
            for name in BACKEND_NAMES
            if name in loaded
            for function in get_backend(name).compiled_functions()
        )
        if self._before is None:
            self._before_t_s = now_t_s
            self._before = {key: place.traces for key, place in places.items()}
        before = self._before
        return [
            self._retraced(place, before.get(key, 0), now_t_s)
            for key, place in places.items()
            if place.traces - before.get(key, 0) >= _LEAST_MORE
        ]

    def _retraced(self, place: _Place, before: int, now_t_s: float) -> Retraced:
        example = place.example
        return Retraced(
            t_s=now_t_s,
            since_t_s=self._before_t_s,
            name=example.name,
            file=as_typed(example.file) if example.file else None,
            line=example.line,
            traces_before=before,
            traces=place.traces,
            functions=place.functions,
            signatures=example.signatures,
        )


def _by_place(
    functions: Iterable[CompiledFunction],
) -> dict[tuple[str | None, int | None], _Place]:
    """Functions of the person's own code, by where they are written."""
    groups: dict[tuple[str | None, int | None], list[CompiledFunction]] = {}
    for function in functions:
        if function.file is not None and is_user_file(function.file):
            groups.setdefault((function.file, function.line), []).append(function)
    return {
        key: _Place(max(group, key=_traces), sum(map(_traces, group)), len(group))
        for key, group in groups.items()
    }


def _traces(function: CompiledFunction) -> int:
    return function.traces
