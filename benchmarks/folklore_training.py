"""One measurement of `folklore.py`: `folklore_training.py SCENARIO REMEDY FOLDER`.

Trains with one remedy, or with none (`-`), and prints a line of JSON: sizes in bytes, times in
seconds of CPU, which other work on the machine disturbs least. `KERAS_BACKEND` names the backend.
Linux only.
"""

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np

import memfit
from memfit.diagnose.growth.trend import fit_slope

ROWS, WIDTH = 200_000, 100  # of the data on disk, 80 MB
BATCH, SMALL_BATCH = 1024, 128  # where activations take the memory
SEED = 7


class Rounds:
    """What memory and the clock of the CPU say at the end of each epoch, or of each model."""

    def __init__(self) -> None:
        gc.collect()
        self.idle_bytes = read_status("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # proc(5): resets the peak
        self._levels_bytes: list[int] = []
        self._times_s = [time.process_time()]

    def end_one(self) -> None:
        """A round is over."""
        self._levels_bytes.append(read_status("RssAnon"))
        self._times_s.append(time.process_time())

    def tell(self) -> dict[str, Any]:
        """Returns the figures. The first rounds warm up, and the very first compiles."""
        late = self._levels_bytes[len(self._levels_bytes) // 3 :]
        took_s = [end - begin for begin, end in zip(self._times_s, self._times_s[1:], strict=False)]
        return {
            "peak_bytes": read_status("VmHWM") - self.idle_bytes,
            "growth_bytes": fit_slope(late).middle if len(late) > 3 else None,
            "round_s": statistics.median(took_s[1:]),
        }


class EachEpoch(keras.callbacks.Callback):
    """Tells `rounds`, after what else is to be done at the end of an epoch."""

    def __init__(self, rounds: Rounds, *actions: Callable[[], Any]) -> None:
        super().__init__()
        self._rounds = rounds
        self._actions = actions

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Runs the actions."""
        for action in self._actions:
            action()
        self._rounds.end_one()


class Hoarder(keras.callbacks.Callback):
    """Keeps the predictions of every epoch."""

    def __init__(self, x: Any) -> None:
        super().__init__()
        self.x, self.outputs = x, []

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Adds to them."""
        self.outputs.append(self.model.predict(self.x, batch_size=640, verbose=0))


REMEDIES: dict[str, tuple[Callable[[], Any], ...]] = {
    "-": (),
    "clear_session": (keras.utils.clear_session,),
    "gc.collect": (gc.collect,),
    "growth": (),
}


def run_steady(remedy: str, folder: Path) -> dict[str, Any]:
    """A clean fit of ten epochs; with `growth`, accelerators take memory as it is needed."""
    return fit_small(remedy, hoards=False)


def run_hoarding(remedy: str, folder: Path) -> dict[str, Any]:
    """The same, and a callback that keeps 2.56 MB of predictions at each epoch."""
    return fit_small(remedy, hoards=True)


def fit_small(remedy: str, *, hoards: bool) -> dict[str, Any]:
    """Trains a small model, with the remedy at the end of each epoch."""
    rounds = Rounds()
    if remedy == "growth":
        memfit.configure(on_demand=True)
    x = np.random.default_rng(0).random((6400, 64), dtype="float32")
    layers = keras.layers
    model = keras.Sequential([layers.Dense(256, activation="relu"), layers.Dense(100)])
    model.compile("adam", "mse")
    each = EachEpoch(rounds, *REMEDIES[remedy])
    callbacks = [Hoarder(x), each] if hoards else [each]
    y = np.zeros((6400, 100), "float32")
    model.fit(x, y, batch_size=64, epochs=10, verbose=0, callbacks=callbacks)
    return rounds.tell()


def run_settings(remedy: str, folder: Path) -> dict[str, Any]:
    """What a script has set, before and after `clear_session`."""
    keras.utils.set_random_seed(SEED)
    keras.config.set_dtype_policy("mixed_bfloat16")
    keras.layers.Dense(1)
    before = read_settings()
    keras.utils.clear_session()
    after = read_settings()
    return {name: [before[name], after[name]] for name in before}


def read_settings() -> dict[str, str]:
    """Returns what Keras keeps for the whole process."""
    from keras.src.utils.rng_utils import get_random_seed

    return {
        "dtype policy of new layers": keras.config.dtype_policy().name,
        "seed of new layers": str(get_random_seed()),
        "name of the next Dense layer": keras.layers.Dense(1).name,
    }


def run_folds(remedy: str, folder: Path) -> dict[str, Any]:
    """Ten models, built, compiled and trained one after another."""
    x = np.random.default_rng(0).random((512, 20), dtype="float32")
    rounds = Rounds()
    for _ in range(10):
        if remedy == "memfit.session":
            with memfit.session():
                fit_fold(x)
        else:
            fit_fold(x)
            for action in REMEDIES[remedy]:
                action()
        rounds.end_one()
    return rounds.tell()


def fit_fold(x: Any) -> None:
    """Builds a model, trains it and forgets it."""
    layers = keras.layers
    model = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(64)])
    model.add(layers.Dense(1))
    model.compile("adam", "mse")
    model.fit(x, x[:, :1], batch_size=64, epochs=1, verbose=0)


def build_deep() -> Any:
    """Returns a model with far more activations than weights."""
    layers = keras.layers
    starts = [keras.initializers.GlorotUniform(seed=seed) for seed in range(4)]
    hidden = [layers.Dense(64, activation="relu", kernel_initializer=one) for one in starts]
    last = layers.Dense(1, kernel_initializer=keras.initializers.GlorotUniform(seed=4))
    return keras.Sequential([keras.Input((128, 8)), *hidden, last])


def make_deep_data() -> tuple[Any, Any]:
    """Returns three batches and a short one."""
    x = np.random.default_rng(0).random((3 * BATCH + 228, 128, 8), dtype="float32")
    return x, x.sum(axis=2, keepdims=True)


def run_activations(remedy: str, folder: Path) -> dict[str, Any]:
    """Batches whose activations take most of the memory. Keeps the weights, to compare them."""
    x, y = make_deep_data()
    rounds = Rounds()
    if remedy.startswith("mixed_"):
        keras.config.set_dtype_policy(remedy)
    is_accumulated = remedy == "gradient_accumulation_steps"
    model = build_deep()
    steps = BATCH // SMALL_BATCH if is_accumulated else None
    model.compile(keras.optimizers.SGD(0.01, gradient_accumulation_steps=steps), "mse")
    if remedy == "memfit.split":
        memfit.split(model, SMALL_BATCH)
    batch_size = SMALL_BATCH if is_accumulated or remedy == "smaller batch" else BATCH
    model.fit(
        *(x, y, batch_size, 3),
        **{"verbose": 0, "shuffle": False, "callbacks": [EachEpoch(rounds)]},
    )
    told = rounds.tell()
    weights = np.concatenate([one.ravel() for one in model.get_weights()])
    np.save(folder / f"weights-{keras.backend.backend()}-{remedy}.npy", weights)
    return told


def run_tape(remedy: str, folder: Path) -> dict[str, Any]:
    """A loop of our own in eager steps, with and without `del` of all that a step made."""
    return run_loop(remedy, is_compiled=False)


def run_compiled_tape(remedy: str, folder: Path) -> dict[str, Any]:
    """The same, compiled by `tf.function`."""
    return run_loop(remedy, is_compiled=True)


def run_loop(remedy: str, *, is_compiled: bool) -> dict[str, Any]:
    """Trains step by step, in rounds of two steps."""
    x, y = (keras.ops.convert_to_tensor(one[:BATCH]) for one in make_deep_data())
    model = build_deep()
    optimizer = keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)
    steps = {"tensorflow": step_with_tape, "torch": step_with_backward}
    step = steps[keras.backend.backend()](model, optimizer, deletes=remedy == "del")
    if is_compiled:
        import tensorflow as tf

        step = tf.function(step)
    rounds = Rounds()
    for _ in range(6):
        step(x, y)
        step(x, y)
        rounds.end_one()
    return rounds.tell()


def step_with_tape(model: Any, optimizer: Any, *, deletes: bool) -> Callable[[Any, Any], None]:
    """Returns a step as the guides of TensorFlow write it."""
    import tensorflow as tf

    def step(x: Any, y: Any) -> None:
        with tf.GradientTape() as tape:
            predictions = model(x, training=True)
            loss = keras.ops.mean((predictions - y) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        if deletes:
            del tape, gradients, predictions, loss

    return step


def step_with_backward(model: Any, optimizer: Any, *, deletes: bool) -> Callable[[Any, Any], None]:
    """Returns a step as the guides of Keras on torch write it."""
    import torch

    def step(x: Any, y: Any) -> None:
        model.zero_grad()
        predictions = model(x, training=True)
        loss = keras.ops.mean((predictions - y) ** 2)
        loss.backward()
        gradients = [one.value.grad for one in model.trainable_weights]
        with torch.no_grad():
            optimizer.apply(gradients, model.trainable_weights)
        if deletes:
            del gradients, predictions, loss

    return step


def run_data(remedy: str, folder: Path) -> dict[str, Any]:
    """Rows from a file of 80 MB, two epochs: read whole into arrays, or otherwise."""
    rounds = Rounds()
    model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    given: dict[str, Any] = {"epochs": 2, "verbose": 0, "callbacks": [EachEpoch(rounds)]}
    if remedy == "-":
        x, y = (np.load(folder / name) for name in ("x.npy", "y.npy"))
        model.fit(x, y, batch_size=512, **given)
    elif remedy == "generator":
        model.fit(read_batches(folder), steps_per_epoch=ROWS // 512, **given)
    elif remedy == "memfit.stream":
        files = (folder / "x.npy", folder / "y.npy")
        model.fit(memfit.stream(files, batch_size=512, shuffle=True, budget="32MB"), **given)
    else:
        model.fit(make_dataset(remedy, folder), **given)
    return rounds.tell()


def read_batches(folder: Path) -> Iterator[tuple[Any, Any]]:
    """A generator over the file, in its order, without end."""
    y = np.load(folder / "y.npy")
    while True:
        with (folder / "x.npy").open("rb") as file:
            np.lib.format.read_magic(file)
            np.lib.format.read_array_header_1_0(file)
            for at in range(0, ROWS - 511, 512):
                rows = np.fromfile(file, "float32", 512 * WIDTH).reshape(512, WIDTH)
                yield rows, y[at : at + 512]


def make_dataset(remedy: str, folder: Path) -> Any:
    """Arrays given to tf.data, as most examples do; with and without prefetch."""
    import tensorflow as tf

    arrays = tuple(np.load(folder / name) for name in ("x.npy", "y.npy"))
    dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(512)
    ahead = {"tf.data": None, "tf.data, prefetch(AUTOTUNE)": tf.data.AUTOTUNE}
    ahead["tf.data, prefetch(200)"] = 200
    return dataset if ahead[remedy] is None else dataset.prefetch(ahead[remedy])


def read_status(field: str) -> int:
    """Returns a field of /proc/self/status in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


if __name__ == "__main__":
    scenarios = {
        "settings": run_settings,
        "steady": run_steady,
        "hoarding": run_hoarding,
        "folds": run_folds,
        "activations": run_activations,
        "tape": run_tape,
        "compiled-tape": run_compiled_tape,
        "data": run_data,
    }
    print(json.dumps(scenarios[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))))
