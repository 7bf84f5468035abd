"""`memfit run --budget`: a script that knows nothing of memfit stays within its memory."""

import os
import re

import pytest

# Torch starts soonest and takes least; narrow layers take little time for their memory.
TRAINING = """
import os
import keras, numpy as np
from keras import layers
keras.utils.set_random_seed(1)
hidden = inputs = keras.Input((64,))
for _ in range(10):
    hidden = layers.LayerNormalization()(layers.Dense(64, "gelu")(hidden))
model = keras.Model(inputs, layers.Dense(1)(hidden))
model.compile("adam", "mse")
rng = np.random.default_rng(0)
x, y = rng.random((65536, 64), "float32"), rng.random((65536, 1), "float32")
model.fit(x, y, batch_size=65536, epochs=2, verbose=2)
print("trained", len(model.history.epoch))
"""
# Torch and Keras take 400 to 600 MB, as pages of libraries are there or not; a whole batch takes
# 740 more.
LIMIT_BYTES = 1_000_000_000
BUDGET_BYTES = 950_000_000


@pytest.mark.parametrize("limited_group", [LIMIT_BYTES], indirect=True)
def test_a_training_that_the_kernel_would_kill_goes_to_its_end(memfit, limited_group):
    def join():
        (limited_group / "cgroup.procs").write_text(str(os.getpid()))

    cache = {"XDG_CACHE_HOME": str(memfit.cwd)}
    ran = memfit.run(
        memfit.script(TRAINING),
        options=("--budget", f"{BUDGET_BYTES}B"),
        backend="torch",
        preexec_fn=join,
        env=cache,
    )

    assert ran.code == 0, ran.stderr
    assert "trained 2" in ran.stdout
    assert "batches of 65536 run in" in ran.stderr
    peak_bytes = max(one.process.peak_rss_bytes or 0 for one in ran.recording.outside)
    assert peak_bytes <= BUDGET_BYTES


@pytest.mark.parametrize("limited_group", [LIMIT_BYTES], indirect=True)
def test_without_a_budget_the_kernel_kills_it(memfit, limited_group):
    def join():
        (limited_group / "cgroup.procs").write_text(str(os.getpid()))

    ran = memfit.run(memfit.script(TRAINING), backend="torch", preexec_fn=join)

    assert ran.code != 0
    assert ran.result["findings"][0]["code"] == "killed"


def test_a_trial_that_passed_the_budget_does_not_end_the_training(memfit):
    # A pool that keeps what a step took: all that is tried after it seems too much.
    far = """
import dataclasses
import numpy as np
import memfit.fitting.size_search as sizes
from memfit.fitting.trial_steps import Prober
sizes._MOST_TIMES_LARGER, sizes._extrapolate = 99, lambda *_: 65536
pool, try_step = [], Prober.try_step
def try_and_keep(prober, size, num_samples):
    measured = try_step(prober, size, num_samples)
    if size == 65536:
        pool.append(np.ones(60_000_000))
    return dataclasses.replace(measured, kept_bytes=prober.gauge.read())
Prober.try_step = try_and_keep
"""
    ran = memfit.run(
        memfit.script(far + TRAINING),
        options=("--budget", f"{BUDGET_BYTES}B"),
        backend="torch",
        env={"XDG_CACHE_HOME": str(memfit.cwd)},
    )

    assert ran.code == 0, ran.stderr
    assert "batches of 65536 run in" in ran.stderr
    assert "a larger trial took more than the budget" in ran.stderr
    assert "BudgetWarning: The training took" in ran.stderr


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--budget", "200MB"), r"takes .* before training"),
        (("--device-budget", "4GB"), "no accelerator whose memory its backend reports"),
    ],
    ids=["host", "device"],
)
def test_a_budget_that_cannot_be_kept_ends_the_script_before_it_trains(memfit, options, why):
    ran = memfit.run(memfit.script(TRAINING), options=options, backend="torch")

    assert ran.code == 1
    assert re.search(why, ran.stderr)
    assert "Epoch" not in ran.stdout


OWN_FUNCTION = """
import keras, numpy as np

class Own(keras.Model):
    def make_train_function(self, force=False):
        return super().make_train_function(force)

inputs = keras.Input((4,))
model = Own(inputs, keras.layers.Dense(1)(inputs))
model.compile("sgd", "mse")
x = np.zeros((64, 4), "float32")
model.fit(x, x[:, :1], verbose=0)
print("trained", int(model.optimizer.iterations))
"""


def test_a_fit_that_cannot_be_controlled_runs_as_it_is_and_is_told_of(memfit):
    ran = memfit.run(
        memfit.script(OWN_FUNCTION), options=("--budget", "8GB", "--check"), backend="torch"
    )

    assert "trained 2" in ran.stdout
    assert "THE BUDGET DOES NOT CONTROL THIS FIT" in ran.stderr
    assert "THE BUDGET OF 8.00 GB DID NOT CONTROL ONE CALL OF FIT" in " ".join(ran.stderr.split())
    assert not ran.result["budget"]["controlled"]
    assert "Own has a make_train_function of its own" in ran.result["budget"]["why"]
    assert ran.code == 3


SHUFFLED = """
import random
import keras, numpy as np
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Dense(8), keras.layers.Dropout(0.5), keras.layers.Dense(1)])
model.compile("adam", "mse")
x = np.random.standard_normal((64, 4)).astype("float32")
history = model.fit(x, x[:, :1], epochs=3, verbose=0)
print(*history.history["loss"], random.random(), np.random.random())
"""


def test_a_script_with_room_prints_the_losses_that_it_prints_without_a_budget(memfit):
    script = memfit.script(SHUFFLED)
    plain = memfit.run(script, backend="torch")
    (memfit.cwd / "recorded").rename(memfit.cwd / "before")

    ran = memfit.run(
        script,
        options=("--budget", "900GB"),
        backend="torch",
        env={"XDG_CACHE_HOME": str(memfit.cwd)},
    )

    assert ran.code == 0, ran.stderr
    assert ran.stdout == plain.stdout
    assert ran.result["budget"]["controlled"]


# What was counted is told by the second look, compared with the first.
ROUNDS = """
import keras, keras_tuner, numpy as np
import memfit
from memfit.agent.process_recorder import observed

class Tuned(keras_tuner.HyperModel):
    def build(self, hp):
        model = keras.Sequential([keras.layers.Dense(hp.Int("units", 1, 9))])
        return model

    def fit(self, hp, model, *args, **kwargs):
        return 0.0

x = np.zeros((8, 8), "float32")
for _ in range(2):
    with memfit.session():
        model = keras.Sequential([keras.Input((8,))])
        for units in (4, 4, 1):
            model.add(keras.layers.Dense(units))
        model.compile("sgd", "mse")
        model.fit(x, x[:, :1], verbose=0)
    models = [keras.Sequential([keras.layers.Dense(1)]) for _ in range(3)]
    keras_tuner.RandomSearch(Tuned(), max_trials=3, overwrite=True).search(verbose=0)
    told = list(observed.find_new(0.0))
for one in told:
    by = "a tuner" if getattr(one, "by_tuner", False) else "the script"
    print(type(one).__name__, getattr(one, "thing", ""), "by", by, "at", one.statement)
"""


def test_a_script_is_told_of_what_it_makes_itself_and_of_what_a_tuner_has_it_make(memfit):
    script = memfit.script(ROUNDS)

    ran = memfit.run(
        script,
        options=("--budget", "8GB"),
        backend="jax",
        env={"XDG_CACHE_HOME": str(memfit.cwd)},
    )

    assert ran.code == 0, ran.stderr
    told = [line for line in ran.stdout.splitlines() if " at " in line]
    assert told == [
        "Made model by the script at "
        "models = [keras.Sequential([keras.layers.Dense(1)]) for _ in range(3)]",
        "Made model by a tuner at "
        "model = keras.Sequential([keras.layers.Dense(hp.Int('units', 1, 9))])",
    ]


def test_a_size_that_cannot_be_read_is_an_error_before_the_script_runs(memfit):
    ran = memfit("run", "--budget", "much", memfit.script("print('ran')"))

    assert ran.returncode == 2
    assert "Cannot read a memory size" in ran.stderr
    assert "ran" not in ran.stdout
