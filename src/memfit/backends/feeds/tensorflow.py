"""TensorFlow takes batches from a `tf.data` pipeline, several at a time.

Each element that a Python generator gives costs some 0.3 ms in TensorFlow, most of it with
Python's lock held. So batches are given in stacks, which C++ threads take apart.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from memfit.backends.feeds import Fed

# More than this is no faster.
_MOST_AT_A_TIME = 16


def make_feed(fed: Fed) -> Any:
    """Returns a `tf.data.Dataset` of batches."""
    import tensorflow as tf

    with tf.device("CPU:0"):
        used = tf.Variable(0, dtype=tf.int64, trainable=False, name="memfit_batches_used")

    def give_stacks() -> Iterator[Any]:
        before = int(used.numpy())
        at_a_time = min(fed.at_a_time, _MOST_AT_A_TIME)
        for rows in fed.begin(at_a_time=at_a_time, count=lambda: int(used.numpy()) - before):
            yield tf.nest.map_structure(lambda one: _stack(one, fed.batch_size), rows)

    def count(*batch: Any) -> Any:
        # The last stage runs when a step asks for a batch: what waits before it does not count.
        with tf.control_dependencies([used.assign_add(1)]):
            return tf.nest.map_structure(tf.identity, batch)

    signature = tf.nest.map_structure(
        lambda spec: tf.TensorSpec((None, *spec.shape), tf.as_dtype(spec.dtype)), fed.specs
    )
    stacks = tf.data.Dataset.from_generator(give_stacks, output_signature=signature)
    batches = stacks.prefetch(1).unbatch().prefetch(2).map(count)
    options = tf.data.Options()
    # Else a stage that keeps a batch ready is put after the one that counts.
    options.experimental_optimization.inject_prefetch = False
    return batches.with_options(options)


def _stack(rows: Any, batch_size: int) -> Any:
    """Rows of several batches, or of one that has fewer, with the batches as the first axis."""
    size = min(batch_size, len(rows))
    return np.reshape(rows, (-1, size, *rows.shape[1:]))
