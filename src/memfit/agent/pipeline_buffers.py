"""What data pipelines keep ready: stages of `tf.data`, the queue of a `PyDataset`."""

import weakref
from typing import Any

from memfit.agent.observations import Observations
from memfit.backends import load, loaded_backend_names
from memfit.backends.events import DataStage
from memfit.failsafe import harmless
from memfit.heap.describe import things_in
from memfit.record.evidence import Buffer
from memfit.user_code.statements import place_at

_LEAST_BYTES = 16_000_000
_enqueuers: "weakref.WeakSet[Any]" = weakref.WeakSet()


def note_enqueuer(enqueuer: Any) -> None:
    """Remembers a queue that Keras fills from a `PyDataset`."""
    _enqueuers.add(enqueuer)


def read_buffers(now_t_s: float, observed: Observations) -> list[Buffer]:
    """Returns the buffers that hold, or will hold, enough to matter."""
    stages = [stage for read in (_read_stages, _read_queues) for stage in read() or ()]
    large = [one for one in stages if max(one.held_bytes, one.full_bytes or 0) >= _LEAST_BYTES]
    return [_buffer(now_t_s, stage, observed) for stage in large]


@harmless
def _read_stages() -> list[DataStage]:
    return [
        stage for name in loaded_backend_names() for stage in load("events", name).read_stages()
    ]


@harmless
def _read_queues() -> list[DataStage]:
    return [stage for one in list(_enqueuers) if (stage := _read_queue(one)) is not None]


def _read_queue(enqueuer: Any) -> DataStage | None:
    """Batches wait in it as results of workers; one that is ready gives the size of all."""
    waiting = list(enqueuer.future_queue.queue)
    ready = [one for one in waiting if getattr(one, "_success", False)]
    if not ready:
        return None
    batch_bytes = sum(thing.size_bytes for thing in things_in(ready[-1]._value))
    return DataStage(
        kind="queue",
        maker=enqueuer.py_dataset,
        held_bytes=batch_bytes * len(ready),
        full_bytes=batch_bytes * enqueuer.future_queue.maxsize,
        length=enqueuer.future_queue.maxsize,
        of_batches=True,
    )


def _buffer(now_t_s: float, stage: DataStage, observed: Observations) -> Buffer:
    line = observed.line_of(stage.maker)
    place = place_at(*line) if line is not None else None
    return Buffer(
        t_s=now_t_s,
        stage=stage.kind,
        held_bytes=stage.held_bytes,
        full_bytes=stage.full_bytes,
        length=stage.length,
        of_batches=stage.of_batches,
        after_repeat=stage.after_repeat,
        file=place.file if place else None,
        line=place.line if place else None,
        statement=place.statement if place else None,
    )
