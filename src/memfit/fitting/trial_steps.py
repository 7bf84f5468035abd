"""Runs trial steps and measures their memory; the model is afterwards as before."""

import contextlib
import inspect
import time
from collections.abc import Iterator
from typing import Any

from memfit.backends.out_of_memory import is_out_of_memory
from memfit.fitting.attempt import Inspection, Measurement
from memfit.fitting.batch import count_bytes, count_samples, explain_uncut, first_rows
from memfit.fitting.gauges import Gauge
from memfit.fitting.graph.layer_cost import LayerWork, estimate_work
from memfit.fitting.one_batch import one_batch_class
from memfit.fitting.state.saved_attributes import attributes_kept
from memfit.fitting.state.saved_state import Snapshot, wait_until_quiet
from memfit.fitting.throttle import make_pace
from memfit.heap.release import release, releasing_often
from memfit.keras_private.graph import inner_graph, ordered_nodes
from memfit.keras_private.trainer import find_fit

# What a core does at least. A batch of another size has TensorFlow trace the step again, which
# takes memory for good, so the first trial should be a whole batch if that is not long.
_OPERATIONS_A_SECOND = 2e9
_TIMED_STEPS = 2
# Samples enough that what does not depend on them is nothing beside them.
_MANY = 1000


class Prober:
    """Runs steps of a model and measures them.

    Its variables change; `probing` puts them back. Steps run through Keras's own `fit`, so that
    what is compiled for them serves the training too.

    Args:
        model: A compiled model, held at its first batch.
        batch: That batch, as the step gets it.
        gauge: The memory that is measured.
        snapshot: What the variables were before.
    """

    def __init__(self, model: Any, batch: Any, gauge: Gauge, snapshot: Snapshot) -> None:
        # Under `memfit run`, `fit` is recorded; trials are not to be.
        self._fit = inspect.unwrap(find_fit(model))
        self.model = model
        self.batch = batch
        self.batch_size = count_samples(batch)
        self.batch_bytes = count_bytes(batch)
        self.why_uncut = explain_uncut(batch)
        self.gauge = gauge
        self._snapshot = snapshot

    def look(self) -> Measurement:
        """Returns what is taken before any step, and what can be counted of one."""
        work = _count_work(self.model)
        if work is None:
            return Measurement(0, self.gauge.read(), inspection=Inspection())
        inspection = Inspection(
            counted_bytes=work.kept_bytes / _MANY + self.batch_bytes / self.batch_size,
            counted_s=work.operations / _MANY / _OPERATIONS_A_SECOND,
        )
        return Measurement(0, self.gauge.read(), inspection=inspection)

    def try_step(self, size: int, num_samples: int) -> Measurement:
        """Returns what one step needs, and how long it takes once it is compiled."""
        is_whole = num_samples == self.batch_size
        release()  # what earlier trials left would count for this one
        failed = False
        taken_s = 0.0
        with self.gauge.watch() as read_peak:
            try:
                batch = self.batch if is_whole else first_rows(self.batch, num_samples)
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
            self.restore()  # a step that ends early on JAX leaves variables empty
        batch = None
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

    def restore(self) -> None:
        """Puts back the variables and random numbers."""
        self._snapshot.restore()

    def _run(self, batch: Any, steps: int) -> None:
        with attributes_kept(self.model):
            self._fit(
                self.model,
                one_batch_class()(batch),
                epochs=steps,
                callbacks=[make_pace(self.gauge, most_kept_bytes=0)],
                verbose=0,
            )


@contextlib.contextmanager
def probing(model: Any, batch: Any, gauge: Gauge) -> Iterator[Prober]:
    """Gives what runs steps of a model; at the end of the block the model is as before."""
    wait_until_quiet()
    with releasing_often(), Snapshot(model) as snapshot:
        yield Prober(model, batch, gauge, snapshot)


def _count_work(model: Any) -> LayerWork | None:
    """Returns what layers keep and do for many samples, `None` if they cannot be seen."""
    graph = inner_graph(model)
    if graph is None:
        return None
    works = [estimate_work(node, _MANY) for node in ordered_nodes(graph)]
    return LayerWork(sum(one.kept_bytes for one in works), sum(one.operations for one in works))
