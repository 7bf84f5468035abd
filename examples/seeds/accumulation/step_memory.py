"""What one step with an effective batch of 128 adds to memory: `step_memory.py WAY PLACES`.

WAY is the rows of a batch, "made-to-run" for the loop of the document in parts of 32, or
"micro-batches-N" for memfit. PLACES is how often the model of the document is applied to each row,
as in a segmentation: 1 is the document's own scale. Linux only.
"""

import gc
import sys
import time
from pathlib import Path

import keras
import numpy as np

import memfit

way, places = sys.argv[1], int(sys.argv[2])
rows = int(way) if way.isdecimal() else 128
width = 100 if places == 1 else 16

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.random((rows, places, width), dtype="float32")
y = rng.integers(0, 10, (rows, places))
model = keras.Sequential(
    [
        keras.Input((places, width)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy")


def read_status(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def accumulate():
    """The loop of made_to_run.py."""
    import tensorflow as tf

    loss_fn = keras.losses.SparseCategoricalCrossentropy()
    sums = [tf.Variable(tf.zeros_like(weight)) for weight in model.trainable_variables]
    for begin in range(0, rows, 32):
        with tf.GradientTape() as tape:
            predictions = model(x[begin : begin + 32], training=True)
            loss = loss_fn(y[begin : begin + 32], predictions)
        gradients = tape.gradient(loss, model.trainable_variables)
        for total, gradient in zip(sums, gradients, strict=True):
            total.assign_add(gradient)
    model.optimizer.apply_gradients(zip(sums, model.trainable_variables, strict=True))


if way.startswith("micro-batches-"):
    memfit.split(model, int(way.removeprefix("micro-batches-")))
x, y = keras.ops.convert_to_tensor(x), keras.ops.convert_to_tensor(y)
keras.ops.convert_to_numpy(x[:1])
gc.collect()
time.sleep(0.5)
idle_bytes = read_status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
for _ in range(3):
    accumulate() if way == "made-to-run" else model.train_on_batch(x, y)
print("added bytes", read_status("VmHWM") - idle_bytes)
