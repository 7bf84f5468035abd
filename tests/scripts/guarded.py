"""Trains where memory runs out, guarded; prints as lines of JSON what came of it.

Arguments: the backend, and the places below to try, all of them if none is given.

As in `exhaust.py`, the limit is on data, a little above what is used when it is set. The same
training without a limit runs first, to compare with.
"""

import contextlib
import io
import json
import os
import resource
import sys
from pathlib import Path

backend, *places = sys.argv[1:]
os.environ["KERAS_BACKEND"] = backend
# Where oneDNN cannot allocate, TensorFlow crashes; and its pool of memory hides the limit.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import keras  # noqa: E402  # the backend is chosen first
import numpy as np  # noqa: E402

from memfit.backends import load  # noqa: E402
from memfit.backends.arrays_on_disk import Kept  # noqa: E402
from memfit.backends.out_of_memory import is_out_of_memory  # noqa: E402
from memfit.fitting.levers.guard import guard  # noqa: E402
from memfit.fitting.trial_steps import release  # noqa: E402

# A micro-batch of another size is compiled by JAX, which needs memory for that.
ROOM_BYTES = 160_000_000 if backend == "jax" else 80_000_000
# Where no step runs, less will do, with smaller weights.
OPTIMIZER_ROOM_BYTES = 50_000_000 if backend == "jax" else 30_000_000
FORWARD_ROWS = 11_000 if backend == "jax" else 8192  # 180 or 134 MB at once
BACKWARD_ROWS = {"tensorflow": 2750, "torch": 2000, "jax": 6700}
WIDE = 4096


def narrow(rows, **options):
    """Small weights, and activations of 16 kB a sample."""
    return [keras.layers.Dense(WIDE, "relu")], (rows, 16), options


def square(units, optimizer):
    """A kernel whose square is what counts, and few samples."""
    return [keras.layers.Dense(units, "relu")], (8, units), {"optimizer": optimizer}


def small_and_square(units):
    layers = [keras.layers.Dense(units, "relu"), keras.layers.Dense(units, "relu")]
    return layers, (8, 16), {"optimizer": "adam"}


# Layers, the shape of a batch, and how the model is compiled.
PLACES = {
    "forward": lambda: narrow(FORWARD_ROWS),
    "backward": lambda: narrow(BACKWARD_ROWS[backend]),  # what is made first fits
    "validation": lambda: narrow(FORWARD_ROWS),
    "update": lambda: square(4100 if backend == "jax" else 3600, "adam"),
    # What Adam keeps is made under the limit.
    "optimizer": lambda: small_and_square(3800 if backend == "jax" else 3000),
}


def build(where):
    keras.utils.set_random_seed(0)
    layers, shape, options = PLACES[where]()
    model = keras.Sequential([keras.Input(shape[1:]), *layers, keras.layers.Dense(1)])
    model.compile(**{"optimizer": keras.optimizers.SGD(0.1, momentum=0.9), **options}, loss="mse")
    return model


class Counted(Kept):
    number = 0

    def __init__(self, arrays):
        Counted.number += 1
        super().__init__(arrays)


class Batches(keras.utils.PyDataset):
    def __init__(self, shape, number):
        super().__init__()
        self._shape, self._number = shape, number
        self.taken = []

    def __len__(self):
        return self._number

    def __getitem__(self, index):
        self.taken.append(index)
        noise = np.random.default_rng(index)
        x = 0.1 * noise.standard_normal(self._shape, "float32")
        return x, noise.standard_normal((self._shape[0], 1), "float32")


def limit(room_bytes):
    release()  # what is given back later would be room
    status = Path("/proc/self/status").read_text().split()
    used_bytes = int(status[status.index("VmData:") + 1]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (used_bytes + room_bytes, resource.RLIM_INFINITY))


def lift():
    resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def read_state(model):
    variables = [*model.variables, *model.optimizer.variables]
    return [np.array(keras.ops.convert_to_numpy(one.value)) for one in variables]


def differ(ours, theirs):
    pairs = zip(ours, theirs, strict=True)
    return max(float(np.abs(one - other).max(initial=0.0)) for one, other in pairs)


def train(model, batches, test, epochs=1):
    return model.fit(batches, validation_data=test, epochs=epochs, verbose=0, shuffle=False)


def put_back(model, values):
    for one, value in zip([*model.variables, *model.optimizer.variables], values, strict=True):
        one.assign(value)


def run(where):
    _, shape, _ = PLACES[where]()
    small = (8, *shape[1:])
    train_shape = small if where == "validation" else shape
    test_shape = shape if where == "validation" else small

    def data():
        return Batches(train_shape, 3), Batches(test_shape, 2)

    free = build(where)
    free_history = train(free, *data(), epochs=2).history
    free_state = read_state(free)
    del free

    model, (batches, test) = build(where), data()
    change = guard(model, calm_batches=3)
    if where != "optimizer":
        model.optimizer.build(model.trainable_variables)
        before = read_state(model)
        train(model, *[Batches(small, 1)] * 2)  # starts threads and compiles
        put_back(model, before)
    before = read_state(model)
    result = {"where": where, "error": None, "changed": None, "taken": None}
    limit(OPTIMIZER_ROOM_BYTES if where == "optimizer" else ROOM_BYTES)
    try:
        history = train(model, batches, test)
    except Exception as error:
        lift()
        result["error"] = {
            "is_out_of_memory": is_out_of_memory(error),
            "message": str(error),
            "notes": getattr(error, "__notes__", []),
        }
        result["changed"] = differ(read_state(model), before)
        history = train(model, batches, test)
    lift()
    more = train(model, batches, test).history
    if result["error"] is None:
        result["taken"] = batches.taken
    result["histories"] = [
        {name: values + more[name] for name, values in history.history.items()},
        free_history,
    ]
    result["differs"] = differ(read_state(model), free_state)
    change.undo()
    return result


guarded = load("retry", backend)
guarded.Kept = Counted
for where in places or PLACES:
    Counted.number = 0
    with contextlib.redirect_stderr(io.StringIO()) as told:
        result = run(where)
    print(
        json.dumps({**result, "kept": Counted.number, "told": told.getvalue().splitlines()}),
        flush=True,
    )
