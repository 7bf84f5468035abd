"""What `recompute` saves and costs: a small transformer on each backend.

`recompute.py` runs every backend with and without, each in a process of its own, and prints a
table; `recompute.py BACKEND WAY` is one of these runs, with the way `kept`, `recomputed`, or `some`
for 200 MB saved.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

BACKENDS = ("tensorflow", "jax", "torch")
WAYS = ("kept", "some", "recomputed")
BATCH_SIZE, LENGTH, WIDTH, DEPTH, HEADS = 32, 128, 128, 6, 4
STEPS = 4


def main() -> None:
    """Runs all, or one with its figures as a line of JSON."""
    if len(sys.argv) > 1:
        print(json.dumps(train(sys.argv[2])))
        return
    print(f"transformer, {DEPTH} blocks, width {WIDTH}, {LENGTH} tokens, batch {BATCH_SIZE}")
    for backend in BACKENDS:
        for way in WAYS:
            figures = run(backend, way)
            print(
                f"{backend:>10} {way:>10}  peak of a step {figures['peak_bytes'] / 1e6:7.0f} MB  "
                f"step {figures['step_s'] * 1000:5.0f} ms  loss {figures['loss']:.6f}  "
                f"{figures['text']}"
            )


def run(backend: str, way: str) -> dict[str, Any]:
    """Returns the figures of one run in a process of its own."""
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "OMP_NUM_THREADS": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "MALLOC_MMAP_THRESHOLD_": "65536",  # what malloc frees goes back at once
    }
    done = subprocess.run(
        [sys.executable, __file__, backend, way],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def train(way: str) -> dict[str, Any]:
    """Trains for some steps and returns the highest memory above the one before, and the time."""
    import keras
    import numpy

    from memfit.fitting.levers.recompute import recompute

    keras.utils.set_random_seed(1)
    model = build()
    model.compile(keras.optimizers.SGD(1e-3), "mse")
    bytes_to_save = 200_000_000 if way == "some" else None
    is_kept = way == "kept"
    text = "" if is_kept else recompute(model, bytes_to_save, batch_size=BATCH_SIZE).text
    x = numpy.random.default_rng(0).normal(size=(BATCH_SIZE, LENGTH, WIDTH)).astype("float32")
    y = x[:, 0, :1]
    reset_peak()
    before = read_status("VmRSS")
    loss = model.train_on_batch(x, y)
    started = time.perf_counter()
    for _ in range(STEPS):
        loss = model.train_on_batch(x, y)
    step_s = (time.perf_counter() - started) / STEPS
    peak = read_status("VmHWM") - before
    return {"peak_bytes": peak, "step_s": step_s, "loss": float(loss), "text": text}


def build() -> Any:
    """Returns a small transformer."""
    import keras

    layers = keras.layers
    inputs = keras.Input((LENGTH, WIDTH))
    x = inputs
    for _ in range(DEPTH):
        y = layers.LayerNormalization()(x)
        y = layers.MultiHeadAttention(HEADS, WIDTH // HEADS, dropout=0.1)(y, y)
        x = layers.Add()([x, y])
        y = layers.LayerNormalization()(x)
        y = layers.Dense(4 * WIDTH, activation="gelu")(y)
        y = layers.Dropout(0.1)(y)
        y = layers.Dense(WIDTH)(y)
        x = layers.Add()([x, y])
    return keras.Model(inputs, layers.Dense(1)(layers.GlobalAveragePooling1D()(x)))


def reset_peak() -> None:
    """Lets the highest memory be counted from now on."""
    Path("/proc/self/clear_refs").write_text("5")


def read_status(name: str) -> int:
    """Returns one size of this process as Linux tells it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


if __name__ == "__main__":
    main()
