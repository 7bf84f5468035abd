"""Runs out of memory in places of a training; prints as JSON what was raised, and what it left.

Arguments: the backend, and some of `forward`, `backward`, `optimizer`, `validation` and `data`,
of each of which a line is printed.

The limit is on data (`RLIMIT_DATA`), set after a first training has started threads and compiled,
and 160 MB above what is used then: room for everything small, whose failure ends the process, but
not for the one large array that each place asks for.
"""

import json
import os
import resource
import sys
import zlib
from pathlib import Path

backend, *places = sys.argv[1:]
os.environ["KERAS_BACKEND"] = backend
# Where oneDNN cannot allocate, TensorFlow crashes; and its pool of memory hides the limit.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import keras  # noqa: E402  # the backend is chosen first
import numpy as np  # noqa: E402

from memfit.backends.out_of_memory import is_out_of_memory  # noqa: E402

ROOM_BYTES = 160_000_000
MANY, WIDE = 65_536, 4096  # activations of 1.07 GB
LARGE = 6600  # a kernel of 174 MB


def build(inputs, units, optimizer):
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(units, activation="relu"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((inputs,)), *layers])
    model.compile(optimizer=optimizer, loss="mse")
    return model


def batch(rows, columns):
    return np.ones((rows, columns), "float32"), np.ones((rows, 1), "float32")


class TooMuch(keras.utils.PyDataset):
    def __len__(self):
        return 1

    def __getitem__(self, at):
        return batch(MANY, 64 * WIDE)


def limit():
    status = Path("/proc/self/status").read_text().split()
    used_bytes = int(status[status.index("VmData:") + 1]) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (used_bytes + ROOM_BYTES, resource.RLIM_INFINITY))


def read_state(model):
    return {one.path: read(one) for one in [*model.weights, *model.optimizer.variables]}


def read(variable):
    try:
        return zlib.crc32(np.ascontiguousarray(keras.ops.convert_to_numpy(variable.value)))
    except Exception as error:
        return type(error).__name__


QUIET = {"verbose": 0, "shuffle": False}


def prepare(where):
    """Returns a model that has started threads and compiled, as far as it can before `where`."""
    if where not in ("backward", "optimizer"):
        model = build(16, WIDE, "adam")
        model.fit(*batch(8, 16), validation_data=batch(8, 16), **QUIET)
        return model
    # Of the first model everything is small; of the second the kernel and so its gradient, or
    # Adam's slots for it, which are made when training starts.
    optimizer = "adam" if where == "optimizer" else "sgd"
    build(4, 4, optimizer).fit(*batch(8, 4), **QUIET)
    model = build(LARGE, LARGE, optimizer)
    model.predict(batch(8, LARGE)[0], verbose=0)
    return model


def exhaust(where):
    model = prepare(where)
    fits = {
        "forward": lambda: model.fit(*batch(MANY, 16), batch_size=MANY, **QUIET),
        "backward": lambda: model.fit(*batch(8, LARGE), **QUIET),
        "optimizer": lambda: model.fit(*batch(8, LARGE), **QUIET),
        "validation": lambda: model.fit(
            *batch(8, 16), validation_data=batch(MANY, 16), validation_batch_size=MANY, **QUIET
        ),
        "data": lambda: model.fit(TooMuch(), **QUIET),
    }
    before = read_state(model)
    limit()
    told = None
    try:
        told_by = "fit"
        fits[where]()
        told_by = "get_weights"  # JAX: `fit` has returned as if nothing had happened
        model.get_weights()
    except Exception as error:
        kind = type(error)
        told = {
            "type": f"{kind.__module__}.{kind.__qualname__}",
            "message": str(error),
            "is_out_of_memory": is_out_of_memory(error),
            "told_by": told_by,
        }
    resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    after = read_state(model)
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    return {**(told or {}), "changed": changed}


for where in places:
    print(json.dumps(exhaust(where)), flush=True)
