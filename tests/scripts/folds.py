"""Builds, compiles and fits a model in each of many folds; prints what each fold adds.

Arguments: number of folds, and `session` or `plain`.
"""

import contextlib
import gc
import sys

import keras
import numpy as np

import memfit
from memfit.diagnose.growth.trend import fit_slope
from memfit.measure.process import read_process

# At its end a session collects garbage; what frameworks bring, a million objects, is none.
gc.collect()
gc.freeze()
folds, how = int(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(0)
x = rng.random((128, 20), dtype="float32")
y = x[:, :1]


def held_mb():
    import os

    return read_process(os.getpid()).held_bytes / 1e6


levels = []
for _ in range(folds):
    with memfit.session() if how == "session" else contextlib.nullcontext():
        model = keras.Sequential(
            [
                keras.layers.Dense(32, activation="relu"),
                keras.layers.Dense(32),
                keras.layers.Dense(1),
            ]
        )
        model.compile(optimizer="adam", loss="mse")
        model.fit(x, y, epochs=1, batch_size=64, verbose=0)
    levels.append(held_mb())
# The first folds warm up; malloc's ups and downs weigh little in a median of slopes.
print("per fold", fit_slope(levels[folds // 3 :]).middle, flush=True)
