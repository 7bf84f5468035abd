"""Tries steps of growing size and measures their memory; the model is afterwards as before."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from memfit.backends.out_of_memory import is_out_of_memory
from memfit.fitting.first_batch import Batch, count_bytes, count_samples, take
from memfit.fitting.gauges import Gauge
from memfit.fitting.graph.layer_cost import LayerWork, estimate_work
from memfit.fitting.saved_state import Snapshot
from memfit.fitting.size_search import Trial, next_size
from memfit.fitting.throttle import make_pace
from memfit.keras_private.graph import inner_graph, ordered_nodes
from memfit.measure.malloc import trim

# A whole batch that takes longer is tried only in the end; before that, some pieces and a sample.
_LONG_S = 3.0
# What a core does at least. A batch of another size has TensorFlow trace the step again, which
# takes memory for good, so the first trial should be a whole batch if that is not long.
_OPERATIONS_A_SECOND = 2e9
_PIECES = 4
_TIMED_STEPS = 2
# Samples enough that what does not depend on them is nothing beside them.
_MANY = 1000


@dataclass(frozen=True, slots=True)
class Measured:
    """What trials found.

    Attributes:
        trials: Each size and its peak, the first without a step.
        seconds: How long a whole batch took, by size, where one was tried.
    """

    trials: tuple[Trial, ...]
    seconds: dict[int, float]


class Prober:
    """Runs steps of a model and measures them.

    Its variables change; the caller puts them back. Steps run through the model's own `fit`, so
    that what is compiled for them serves the training too.

    Args:
        fit: The model's own `fit`.
        model: A built model.
        batch: A whole batch.
        gauge: The memory that is measured.
        snapshot: What the variables were before.
        shuffles: Whether the training puts its samples into another order.
    """

    def __init__(
        self,
        fit: Callable[..., Any],
        model: Any,
        batch: Batch,
        gauge: Gauge,
        snapshot: Snapshot,
        *,
        shuffles: bool,
    ) -> None:
        self._fit = fit
        self.model = model
        self.batch = batch
        self.batch_size = count_samples(batch)
        self.gauge = gauge
        self._snapshot = snapshot
        # Where it makes no difference to the memory, no random numbers are drawn.
        self._shuffles = shuffles and gauge.copies_shuffled
        self._sample_bytes = count_bytes(take(batch, 1))
        self._fed_bytes = self._sample_bytes * gauge.batch_copies

    def try_sizes(
        self,
        budget_bytes: int,
        resize: Callable[[int], None] | None,
        *,
        tries_whole: bool = False,
    ) -> Measured:
        """Returns what steps of growing size need.

        Args:
            budget_bytes: No size is tried that seems to need more.
            resize: Sets the size of a piece; without it, smaller batches are tried.
            tries_whole: Whether each trial is a whole batch, however long it takes.
        """
        trials = [Trial(0, self.gauge.read())]
        seconds: dict[int, float] = {}
        least_bytes = trials[0].peak_bytes + round(self.batch_size * self._fed_bytes)
        if least_bytes > budget_bytes:  # the batch by itself, whatever the pieces
            return Measured((*trials, Trial(1, least_bytes, is_counted=True)), seconds)
        sample_s, counted_bytes = _LONG_S, None
        work = _count_work(self.model)
        if work is not None:
            counted_bytes = work.kept_bytes / _MANY + self._sample_bytes
            sample_s = work.operations / _MANY / _OPERATIONS_A_SECOND
        size = next_size(trials, self.batch_size, budget_bytes)
        if not self.gauge.can_reset:  # a peak would hide those of smaller sizes
            size, sample_s = 1, _LONG_S
        while size is not None:
            number = size
            if resize is not None:
                resize(size)
                is_short = tries_whole or sample_s * self.batch_size < _LONG_S
                number = self.batch_size if is_short else min(self.batch_size, _PIECES * size)
            trial, taken_s = self.try_step(size, number)
            rest_bytes = round((self.batch_size - number) * self._fed_bytes)
            sample_s = taken_s / number
            trials.append(
                replace(trial, peak_bytes=trial.peak_bytes + rest_bytes, sample_s=sample_s)
            )
            if number == self.batch_size:
                seconds[size] = taken_s
            size = next_size(trials, self.batch_size, budget_bytes, counted_bytes, self.gauge.bend)
        return Measured(tuple(trials), seconds)

    def try_step(self, size: int, num_samples: int | None = None) -> tuple[Trial, float]:
        """Returns what one step needs, and how long it takes once it is compiled."""
        batch = take(self.batch, num_samples or self.batch_size)
        release()  # what earlier trials left would count for this one
        failed = False
        taken_s = 0.0
        with self.gauge.watch() as read_peak:
            try:
                self._run(batch, steps=1)
                release()
                begun_s = time.perf_counter()
                self._run(batch, _TIMED_STEPS)  # each begins with what the one before has left
                taken_s = (time.perf_counter() - begun_s) / _TIMED_STEPS
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                failed = True
        if failed:
            self._snapshot.restore()  # a step that ends early on JAX leaves variables empty
        return Trial(size, read_peak(), failed), taken_s

    def _run(self, batch: Batch, steps: int) -> None:
        x, y, sample_weight = batch
        self._fit(
            self.model,
            x,
            y,
            batch_size=count_samples(batch),
            epochs=steps,
            callbacks=[make_pace(self.gauge, most_kept_bytes=0)],
            sample_weight=sample_weight,
            shuffle=self._shuffles,
            verbose=0,
        )


def _count_work(model: Any) -> LayerWork | None:
    """Returns what layers keep and do for many samples, `None` if they cannot be seen."""
    graph = inner_graph(model)
    if graph is None:
        return None
    works = [estimate_work(node, _MANY) for node in ordered_nodes(graph)]
    return LayerWork(sum(one.kept_bytes for one in works), sum(one.operations for one in works))


def release() -> None:
    """Gives back what nothing holds any more."""
    gc.collect()
    trim()
