"""The levers that trial steps run with, installed in a model and undone again."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from memfit.backends.micro_batches import MicroBatches
from memfit.errors import UsageError
from memfit.fitting.attempt import Levers, Recomputation
from memfit.fitting.batch import unpack
from memfit.fitting.gauges import Gauge
from memfit.fitting.levers.change import Change
from memfit.fitting.levers.micro_batches import describe_split, install, make_micro_batches
from memfit.fitting.levers.precision import reduce_precision
from memfit.fitting.levers.recompute import describe_recompute, install_recompute
from memfit.fitting.proof.gate import check_same
from memfit.fitting.proof.proof import Lever
from memfit.fitting.proof.verdict import Verdict

_PRECISION, _MICRO_BATCHES = "precision", "micro-batches"


class InstalledLevers:
    """What is installed in a model, each lever on top of those before it.

    Args:
        model: A built and compiled model.
        batchnorm: What BatchNormalization may do.
        gauge: The memory that the budget is about.
        most_bytes: When more is taken after a micro-batch, free memory is given back.

    Attributes:
        collects: Whether metrics see the predictions of a whole batch, as a proof tells.
    """

    def __init__(self, model: Any, batchnorm: str | None, gauge: Gauge, most_bytes: int) -> None:
        self._model = model
        self._batchnorm = batchnorm
        self._gauge = gauge
        self._most_bytes = most_bytes
        self._installed: list[tuple[str | Recomputation, Change]] = []
        self._micro_batches: MicroBatches | None = None
        self.collects = False

    @property
    def texts(self) -> tuple[str, ...]:
        """What was changed beside the size of micro-batches, in words."""
        return tuple(str(change) for lever, change in self._installed if lever != _MICRO_BATCHES)

    def install(self, levers: Levers) -> bool:
        """Installs these levers, undoes all others, and does not touch what stays the same.

        Returns:
            Whether all of them apply to this model.
        """
        wanted = _in_order(levers)
        while [lever for lever, _ in self._installed] != wanted[: len(self._installed)]:
            self._installed.pop()[1].undo()
        for lever in wanted[len(self._installed) :]:
            try:
                change = self._install(lever, levers.micro_batch_size or 0)
            except UsageError:
                if isinstance(lever, Recomputation):
                    return False
                raise
            self._installed.append((lever, change))
        if self._micro_batches is not None and levers.micro_batch_size is not None:
            self._micro_batches.resize(levers.micro_batch_size)
        return True

    def prove(self, levers: Levers, batch: Any, allow: Sequence[str], fitting_rows: int) -> Verdict:
        """Returns what a proof finds of levers that change no result; none may be installed.

        Args:
            levers: What is to be proved; lower precision, which the user has allowed, is not.
            batch: A whole batch.
            allow: What the user has allowed.
            fitting_rows: How many rows fit into a whole step.

        Raises:
            UsageError: They would train something else, or nobody can tell.
        """
        verdict = check_same(
            self._model,
            unpack(batch),
            self._describe(levers),
            allow=allow,
            most_rows=fitting_rows,
        )
        self.collects = verdict.collects
        return verdict

    def _describe(self, levers: Levers) -> Lever:
        """Returns levers as a proof sees them: all at once."""
        parts = []
        if levers.recompute is not None:
            asked = levers.recompute
            parts.append(
                describe_recompute(self._model, asked.bytes_to_save, batch_size=asked.batch_size)
            )
        if levers.micro_batch_size is not None:
            parts.append(describe_split(self._model, self._batchnorm))
        return parts[0] if len(parts) == 1 else _join(*parts)

    def undo(self) -> None:
        """Undoes everything."""
        self.install(Levers())

    def _install(self, lever: str | Recomputation, size: int) -> Change:
        if isinstance(lever, Recomputation):
            return install_recompute(self._model, lever.bytes_to_save, batch_size=lever.batch_size)
        if lever == _PRECISION:
            return reduce_precision(self._model)
        self._micro_batches = make_micro_batches(
            self._model, size, self._batchnorm, collects=self.collects
        )
        # Once much is taken, malloc gives back what lies free between micro-batches: a heap in
        # which freed and living tensors lie mixed may grow by a tenth.
        self._micro_batches.after_each = lambda: self._gauge.trim_above(self._most_bytes)
        return install(self._model, self._micro_batches, self._batchnorm)


def _join(first: Lever, last: Lever) -> Lever:
    """Both levers, the last one on top."""

    @contextlib.contextmanager
    def install_both(size: int, collects: bool) -> Iterator[None]:
        with first.install(size, collects), last.install(size, collects):
            yield

    return replace(last, install=install_both, name=f"{first.name}; {last.name}")


def _in_order(levers: Levers) -> list[str | Recomputation]:
    """The levers in the order in which they are installed."""
    wanted: list[str | Recomputation] = [_PRECISION] if levers.lowers_precision else []
    if levers.recompute is not None:
        wanted.append(levers.recompute)
    if levers.micro_batch_size is not None:
        wanted.append(_MICRO_BATCHES)
    return wanted
