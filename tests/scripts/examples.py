"""Runs the Python examples of documents, each by itself, with the names that they leave open.

Arguments: files. Loops over numbers end after three passes. Prints a JSON list of what failed, as
[file, number of the block, error]. A block whose title says what it is not, such as "not Python",
is not run. Files whose name is given with a `+` before it are run as one script, block after block.
"""

import builtins
import contextlib
import gc
import io
import json
import random
import re
import sys
import warnings
from pathlib import Path
from threading import Thread
from unittest import mock

import keras
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tensorflow as tf
import torch
from PIL import Image
from torch.utils.data import DataLoader, TensorDataset

import memfit

BLOCK = re.compile(r'^```python(?: title="(?P<title>[^"]*)")?\n(?P<code>.*?)^```$', re.M | re.S)


class Rows(keras.utils.PyDataset):
    """Data of a script; torch's `DataLoader` takes it too."""

    def __init__(self, *data, **how):
        super().__init__(**how)

    def __len__(self):
        return 2

    def __getitem__(self, index):
        return X[0], Y[0]


X = np.random.default_rng(0).random((10, 32, 4), dtype="float32")
Y = X.sum(axis=2, keepdims=True)


def compile_eagerly(model, *args, original=keras.Model.compile, **kwargs):
    """Blocks train for a few steps: tracing would take most of the time."""
    original(model, *args, **{"run_eagerly": True, **kwargs})


def build_model():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.build((None, 4))
    return model


def write_files():
    """What examples read: rows, records, a picture, chunks."""
    np.save("x.npy", X.reshape(-1, 4))
    np.save("y.npy", Y.reshape(-1, 1))
    np.save("rows.npy", X[0])
    pq.write_table(pa.table({"a": X[0, :, 0], "y": Y[0, :, 0]}), "rows.parquet")
    with tf.io.TFRecordWriter("one.tfrecord") as writer:
        writer.write(b"record")
    Image.fromarray(np.zeros((4, 4, 3), "uint8")).save("one.jpg")


def make_names(code):
    """What a script around an example would have."""
    model = build_model()
    x, y = (X, Y) if "x[fold]" in code else (X[0], Y[0])
    return {
        **{"np": np, "tf": tf, "torch": torch, "memfit": memfit, "random": random},
        **{"Thread": Thread, "DataLoader": DataLoader, "TensorDataset": TensorDataset},
        **{"x": x, "y": y, "model": model, "build_model": build_model, "Rows": Rows},
        **{"weights": model.trainable_variables, "loss_fn": keras.losses.MeanSquaredError()},
        **{"optimizer": keras.optimizers.Adam(), "loss": 0.5, "losses": [0.5, 0.4]},
        "dataset": tf.data.Dataset.from_tensor_slices((X, Y)).take(2),
        "parts": [tf.data.Dataset.from_tensor_slices((X, Y)).take(2) for _ in range(2)],
        **{"files": ["one.tfrecord"], "paths": ["one.jpg"] * 2, "rates": [0.1, 0.2]},
        "step": lambda x, y: None,
        **{"parse": lambda record: record, "load": lambda part: part, "train": lambda batch: batch},
        **{"samples": [(row, 1) for row in X[0]], "image": tf.ones((2, 2))},
        "range": lambda *ends: builtins.range(*ends)[:3],
    }


def make_torch_names(code):
    """The same for a loop of torch."""
    net = torch.nn.Linear(4, 1)
    return {
        **make_names(code),
        "net": net,
        "criterion": torch.nn.MSELoss(),
        "optimizer": torch.optim.Adam(net.parameters()),
        "loader": [(torch.rand(8, 4), torch.rand(8, 1)) for _ in range(5)],
    }


def run_page(path, failed):
    """Adds what does not run to `failed`."""
    write_files()
    is_script = path.startswith("+")
    path = path.removeprefix("+")
    shared = {"__name__": "example", "range": builtins.range}
    for number, block in enumerate(BLOCK.finditer(Path(path).read_text()), 1):
        if (block["title"] or "").startswith(("not ", "needs ")):
            continue
        code = block["code"]
        make = make_torch_names if "import torch" in code else make_names
        names = shared if is_script else make(code)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(code, f"{path}, block {number}", "exec"), names)
        except Exception as error:
            failed.append([Path(path).name, number, f"{type(error).__name__}: {error}"[:300]])
        finally:  # what examples change for the whole process
            gc.enable()
            gc.unfreeze()
            plt.close("all")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    mpl.use("agg")
    failed = []
    for path in sys.argv[1:]:
        compiles = keras.Model.compile if path.startswith("+") else compile_eagerly
        with mock.patch.object(keras.Model, "compile", compiles):
            run_page(path, failed)
    print(json.dumps(failed))
