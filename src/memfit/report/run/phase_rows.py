"""The rows of the table of phases: what stands at the top, what is folded, what is left out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from memfit.diagnose.growth.phases import Phase

_MOST_AT_EACH_END = 20

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Excerpt(Generic[Item]):
    """A long list with its middle left out.

    Attributes:
        first: How it begins.
        num_left_out: How many are not shown.
        last: How it ends.
    """

    first: tuple[Item, ...]
    num_left_out: int = 0
    last: tuple[Item, ...] = ()

    @property
    def shown(self) -> tuple[Item, ...]:
        """All that is not left out."""
        return (*self.first, *self.last)


@dataclass(frozen=True, slots=True)
class EpochRows:
    """An epoch with what ran in it and after it, until the next one."""

    phase: Phase
    inner: Excerpt[Phase]


@dataclass(frozen=True, slots=True)
class TopRow:
    """A phase that no other one contains, with what it contains.

    Attributes:
        phase: The phase.
        inside: What is folded under it.
        num_epochs: How many epochs it has, shown or not.
    """

    phase: Phase
    inside: Excerpt[EpochRows]
    num_epochs: int


def arrange_phases(phases: Sequence[Phase]) -> Excerpt[TopRow]:
    """Returns `phases`, which are in the order of their beginning, as rows and folded rows."""
    groups: list[tuple[Phase, list[Phase]]] = []
    for phase in phases:
        if groups and phase.begin_t_s < groups[-1][0].end_t_s:
            groups[-1][1].append(phase)
        else:
            groups.append((phase, []))
    return _excerpt([_top_row(phase, inner) for phase, inner in groups])


def _top_row(phase: Phase, inner: Sequence[Phase]) -> TopRow:
    num_epochs = sum(1 for one in inner if one.name == "epoch")
    return TopRow(phase, _excerpt(list(_epoch_rows(inner))), num_epochs)


def _epoch_rows(phases: Iterable[Phase]) -> Iterable[EpochRows]:
    """What a callback runs at the end of an epoch belongs to that epoch."""
    groups: list[tuple[Phase, list[Phase]]] = []
    for phase in phases:
        if groups and groups[-1][0].name == "epoch" != phase.name:
            groups[-1][1].append(phase)
        else:
            groups.append((phase, []))
    return (EpochRows(phase, _excerpt(inner)) for phase, inner in groups)


def _excerpt(items: Sequence[Item]) -> Excerpt[Item]:
    num_left_out = len(items) - 2 * _MOST_AT_EACH_END
    if num_left_out <= 0:
        return Excerpt(tuple(items))
    return Excerpt(
        first=tuple(items[:_MOST_AT_EACH_END]),
        num_left_out=num_left_out,
        last=tuple(items[-_MOST_AT_EACH_END:]),
    )
