"""Searches with Optuna and with KerasTuner; prints for each, as JSON, what a trial adds, in MB.

Arguments: number of trials, and `session` or `plain`.
"""

import contextlib
import gc
import json
import os
import sys
import tempfile

import keras
import keras_tuner
import numpy as np
import optuna

import memfit
from memfit.diagnose.growth.trend import fit_slope
from memfit.measure.process import read_process

# At its end a session collects garbage; what frameworks bring, a million objects, is none.
gc.collect()
gc.freeze()
trials, how = int(sys.argv[1]), sys.argv[2]
rng = np.random.default_rng(0)
x = rng.random((256, 20), dtype="float32")
y = x[:, :1]
levels = []


@contextlib.contextmanager
def measured_trial():
    with memfit.session() if how == "session" else contextlib.nullcontext():
        yield
    levels.append(read_process(os.getpid()).held_bytes / 1e6)


def build(rate):
    model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(rate), loss="mse")
    return model


def objective(trial):
    with measured_trial():
        model = build(trial.suggest_float("rate", 1e-4, 1e-2, log=True))
        return float(model.fit(x, y, batch_size=128, verbose=0).history["loss"][-1])


class Search(keras_tuner.RandomSearch):
    def run_trial(self, trial, *args, **kwargs):
        with measured_trial():
            return super().run_trial(trial, *args, **kwargs)


def search_with_optuna():
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=trials)
    return len(study.trials)


def search_with_keras_tuner():
    with tempfile.TemporaryDirectory() as folder:
        tuner = Search(
            lambda hp: build(hp.Float("rate", 1e-4, 1e-2, sampling="log")),
            objective=keras_tuner.Objective("loss", "min"),
            max_trials=trials,
            directory=folder,
            seed=0,
        )
        tuner.search(x, y, batch_size=128, verbose=0)
        return len(tuner.oracle.get_best_trials(trials))


for search in (search_with_optuna, search_with_keras_tuner):
    levels.clear()
    completed = search()
    # The first trials warm up; malloc's ups and downs weigh little in a median of slopes.
    slope = fit_slope(levels[trials // 3 :])
    told = {"completed": completed, "low": slope.low, "middle": slope.middle, "high": slope.high}
    print(json.dumps({"search": search.__name__, **told}), flush=True)
