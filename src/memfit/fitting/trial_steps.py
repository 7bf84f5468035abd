"""Runs trial steps and measures their memory; the model is afterwards as before."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from memfit.backends.out_of_memory import is_out_of_memory
from memfit.fitting.attempt import Inspection, Measurement
from memfit.fitting.first_batch import Batch, count_bytes, count_samples, take
from memfit.fitting.gauges import Gauge
from memfit.fitting.graph.layer_cost import LayerWork, estimate_work
from memfit.fitting.saved_state import Snapshot
from memfit.fitting.throttle import make_pace
from memfit.heap.release import release, releasing_often
from memfit.keras_private.graph import inner_graph, ordered_nodes

# What a core does at least. A batch of another size has TensorFlow trace the step again, which
# takes memory for good, so the first trial should be a whole batch if that is not long.
_OPERATIONS_A_SECOND = 2e9
_TIMED_STEPS = 2
# Samples enough that what does not depend on them is nothing beside them.
_MANY = 1000


class Prober:
    """Runs steps of a model and measures them.

    Its variables change; `probing` puts them back. Steps run through the model's own `fit`, so
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
        self.fed_bytes = self._sample_bytes * gauge.batch_copies

    def look(self) -> Measurement:
        """Returns what is taken before any step, and what can be counted of one."""
        work = _count_work(self.model)
        if work is None:
            return Measurement(0, self.gauge.read(), inspection=Inspection())
        inspection = Inspection(
            counted_bytes=work.kept_bytes / _MANY + self._sample_bytes,
            counted_s=work.operations / _MANY / _OPERATIONS_A_SECOND,
        )
        return Measurement(0, self.gauge.read(), inspection=inspection)

    def try_step(self, size: int, num_samples: int) -> Measurement:
        """Returns what one step needs, and how long it takes once it is compiled."""
        batch = take(self.batch, num_samples)
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
        peak_bytes = read_peak()
        release()
        return Measurement(
            size,
            peak_bytes,
            failed,
            num_samples=num_samples,
            step_s=taken_s,
            kept_bytes=self.gauge.read(),
        )

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


@contextlib.contextmanager
def probing(
    fit: Callable[..., Any], model: Any, batch: Batch, gauge: Gauge, *, shuffles: bool
) -> Iterator[Prober]:
    """Gives what runs steps of a model; at the end of the block the model is as before."""
    with releasing_often(), Snapshot(model) as snapshot:
        yield Prober(fit, model, batch, gauge, snapshot, shuffles=shuffles)


def _count_work(model: Any) -> LayerWork | None:
    """Returns what layers keep and do for many samples, `None` if they cannot be seen."""
    graph = inner_graph(model)
    if graph is None:
        return None
    works = [estimate_work(node, _MANY) for node in ordered_nodes(graph)]
    return LayerWork(sum(one.kept_bytes for one in works), sum(one.operations for one in works))
