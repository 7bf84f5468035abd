"""Training within a budget. Run by tests/backends/test_each_backend.py, once for each backend."""

import gc
import json
import re

import keras
import numpy as np
import pytest
from keras import layers

import memfit
from memfit.backends import load
from memfit.backends.devices import DeviceMemory
from memfit.errors import BudgetError, InvalidSizeError, UsageError
from memfit.fitting.gauges import HostGauge
from memfit.fitting.headroom import Headroom
from memfit.fitting.plan import Plan
from memfit.fitting.throttle import find_most_kept, make_pace
from memfit.measure.peak import Peak, read_tree_bytes
from memfit.units import parse_size
from memfit.user_code.own_calls import is_own_call

RNG = np.random.default_rng(0)
MB = 1_000_000
# Less than a whole batch needs, more than a compiler does.
ROOM_MB = {"tensorflow": 350, "jax": 400, "torch": 150}[keras.backend.backend()]
BATCH_SIZE = 32_768
GAUGE = HostGauge(load("devices"))
# The memory of a step is mostly that of its samples; narrow layers take little time.
X = RNG.standard_normal((BATCH_SIZE, 64), dtype="float32")
Y = RNG.standard_normal((BATCH_SIZE, 1), dtype="float32")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def deep(blocks=8):
    keras.utils.set_random_seed(1)
    inputs = keras.Input((64,))
    hidden = inputs
    for _ in range(blocks):
        hidden = layers.LayerNormalization()(layers.Dense(64, "gelu")(hidden))
    model = keras.Model(inputs, layers.Dense(1)(hidden))
    model.compile(keras.optimizers.SGD(0.01), "mse", metrics=["mae"])
    return model


def small():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((64,)), layers.Dropout(0.5), layers.Dense(1)])
    model.compile(keras.optimizers.Adam(), "mse")
    return model


def budget_of(extra_mb):
    return f"{read_tree_bytes() // MB + extra_mb}MB"


def test_a_budget_that_cannot_be_kept_says_what_would_do():
    # First of all: what an earlier training has left would do for this one.
    model = deep(blocks=2)
    before = model.get_weights()

    with pytest.raises(BudgetError, match="nothing was trained"):
        memfit.fit(model, X, Y, batch_size=64, budget=budget_of(5))

    assert "train_step" not in model.__dict__
    for one, other in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_training_that_does_not_fit_is_cut_and_ends_the_same(tmp_path, capsys):
    model = deep()
    before = model.get_weights()
    budget = budget_of(ROOM_MB)
    with Peak() as peak:
        history = memfit.fit(
            model, X, Y, batch_size=BATCH_SIZE, epochs=1, shuffle=False, budget=budget
        )
    weights, peak_bytes = model.get_weights(), peak.read()

    assert peak_bytes <= parse_size(budget)
    printed = capsys.readouterr().err
    assert "micro-batches of" in printed
    assert "whole batches would need about" in printed
    assert "train_step" not in model.__dict__
    (size,) = json.loads((tmp_path / "memfit" / "micro_batch_sizes.json").read_text()).values()
    assert f"micro-batches of {size}" in printed

    model.set_weights(before)
    model.compile(keras.optimizers.SGD(0.01), "mse", metrics=["mae"])
    plain = model.fit(X, Y, BATCH_SIZE, shuffle=False, verbose=0)
    assert history.history["loss"] == pytest.approx(plain.history["loss"], rel=1e-5)
    assert history.history["mae"] == pytest.approx(plain.history["mae"], rel=1e-5)
    for one, other in zip(weights, model.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_a_training_that_fits_is_not_changed_at_all():
    plain = small()
    plain.fit(X[:640], Y[:640], batch_size=64, epochs=2, verbose=0)

    model = small()
    memfit.fit(model, X[:640], Y[:640], 64, epochs=2, verbose=0, budget=budget_of(2000))

    for one, other in zip(model.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


# Keras's own stateful layers do not train on torch.
STATEFUL = [layers.LSTM(4, stateful=True)] if keras.backend.backend() != "torch" else []


@pytest.mark.parametrize("layer", [layers.LSTM(4), *STATEFUL])
def test_a_model_for_batches_of_one_size_is_trained_on_whole_ones(layer):
    lines = X.reshape(-1, 8, 8)[:64]
    model = keras.Sequential([keras.Input(batch_shape=(16, 8, 8)), layer, layers.Dense(1)])
    model.compile("adam", "mse")

    memfit.fit(model, lines, Y[:64], batch_size=16, shuffle=False, budget=budget_of(2000))

    assert model.optimizer.iterations == 4


def test_a_budget_above_the_machine_is_told_and_works(capsys):
    memfit.fit(small(), X[:64], Y[:64], batch_size=32, budget="900TB")

    assert "more than is available" in capsys.readouterr().err


def test_a_generator_loses_no_batch():
    seen = []

    class Seen(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            seen.append(batch)

    def batches():
        for begin in range(0, 320, 64):
            yield X[begin : begin + 64], Y[begin : begin + 64]

    memfit.fit(small(), batches(), callbacks=[Seen()], verbose=0, budget=budget_of(2000))

    assert len(seen) == 5


def test_a_generator_whose_batches_grow_is_refused():
    def batches():
        yield X[:32], Y[:32]
        yield X[:64], Y[:64]

    with pytest.raises(Exception, match="batch of 64 samples; the first had 32"):
        memfit.fit(small(), batches(), verbose=0, budget=budget_of(2000))


def not_compiled():
    return keras.Sequential([keras.Input((64,)), layers.Dense(1)])


@pytest.mark.parametrize(
    ("budget", "error"),
    [
        ("1MB", BudgetError),
        ("0GB", InvalidSizeError),
        ("-1GB", InvalidSizeError),
        ("much", InvalidSizeError),
        (4_000_000_000, UsageError),
    ],
)
def test_a_budget_that_makes_no_sense_is_refused(budget, error):
    with pytest.raises(error):
        memfit.fit(small(), X, Y, batch_size=32, budget=budget)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "batch_size is missing"),
        ({"batch_size": 0}, "1 or more"),
        ({"batch_size": 32, "allow": ("anything",)}, "allow must be"),
        ({"batch_size": 32, "batchnorm": "some"}, "batchnorm must be"),
        ({"batch_size": 32, "device_budget": "6GB"}, "Give one of budget .* and device_budget"),
    ],
    ids=str,
)
def test_arguments_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        memfit.fit(small(), X, Y, budget="100GB", **arguments)


def test_a_model_that_is_not_compiled_is_refused():
    with pytest.raises(UsageError, match="not compiled"):
        memfit.fit(not_compiled(), X, Y, batch_size=32, budget="100GB")


def plan_of(peak_mb):
    return Plan(1, None, peak_mb * MB, 1000 * MB, step_s=1.0)


class Wide(keras.utils.PyDataset):
    """Twelve batches of 40 MB, each for a step that takes nearly nothing."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return np.ones((156_250, 64), "float32"), np.ones((156_250, 1), "float32")


def test_a_tight_training_holds_few_batches_at_once():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((64,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    before = read_tree_bytes()

    most_bytes = find_most_kept(Headroom(1000 * MB, 800 * MB), plan_of(920), 40 * MB)
    with Peak() as peak:
        model.fit(Wide(), callbacks=[make_pace(GAUGE, most_bytes)], verbose=0)

    assert peak.read() - before < 5 * 40 * MB


def test_a_training_with_room_is_not_held_back():
    room = Headroom(1000 * MB, 500 * MB)

    assert find_most_kept(room, plan_of(600), MB) is None


class Accelerator:
    """Counts as a device does, with the smallest fake at the seam: none is at hand.

    Args:
        limit_mb: What there is; more than that cannot be allocated.
        power: How what a step takes grows with its samples.
    """

    def __init__(self, limit_mb=2000, power=1):
        self.limit_bytes = limit_mb * MB
        self.power = power
        self.peak_bytes = self.highest_bytes = 100 * MB

    def run(self, num_samples):
        needed_bytes = (100 + 40 * int(num_samples) ** self.power) * MB
        if needed_bytes > self.limit_bytes:
            raise MemoryError
        self.peak_bytes = max(self.peak_bytes, needed_bytes)
        self.highest_bytes = max(self.highest_bytes, needed_bytes)

    def read_devices(self):
        return (DeviceMemory("GPU:0", 100 * MB, self.peak_bytes, self.limit_bytes),)

    def reset_peaks(self):
        if keras.backend.backend() == "jax":
            return False
        self.peak_bytes = 100 * MB
        return True


@pytest.fixture
def accelerator(request, monkeypatch):
    device = Accelerator(**request.param)
    for name in ("read_devices", "reset_peaks"):
        monkeypatch.setattr(load("devices"), name, getattr(device, name))
    gc.freeze()  # trials collect garbage often, and there is none among what is loaded
    yield device
    gc.unfreeze()


def find_size(printed):
    return int(re.search(r"micro-batches of (\d+)", printed)[1])


def on_device(accelerator):
    class OnDevice(layers.Layer):
        def call(self, inputs, training=False):
            # On JAX this is run while a step is traced, which `fit` does before it is held.
            if training and (keras.backend.backend() != "jax" or is_own_call()):
                accelerator.run(inputs.shape[0])
            return inputs

    model = keras.Sequential([keras.Input((64,)), OnDevice(), layers.Dense(1)])
    # Each micro-batch is to be seen: once for each size is enough where peaks are not set back.
    model.compile("sgd", "mse", run_eagerly=keras.backend.backend() != "jax")
    return model


@pytest.mark.parametrize("accelerator", [{"limit_mb": 500}], indirect=True)
def test_a_step_that_finds_no_memory_on_the_device_is_followed_by_smaller_ones(accelerator, capsys):
    memfit.fit(on_device(accelerator), X[:16], Y[:16], batch_size=16, device_budget="700MB")

    printed = capsys.readouterr().err
    assert "of 700 MB on GPU:0" in printed
    assert 8 <= find_size(printed) <= 10
    assert all(len(line) <= 80 for line in printed.splitlines())


@pytest.mark.parametrize("accelerator", [{"power": 2}], indirect=True)
def test_a_trial_that_passes_a_device_budget_does_not_hide_what_keeps_it(accelerator, capsys):
    memfit.fit(on_device(accelerator), X[:16], Y[:16], batch_size=16, device_budget="700MB")

    assert accelerator.highest_bytes > 700 * MB
    assert 1 <= find_size(capsys.readouterr().err) <= 3


@pytest.mark.parametrize("accelerator", [{}], indirect=True)
def test_a_device_budget_that_is_taken_already_is_refused(accelerator):
    with pytest.raises(BudgetError, match="100 MB of GPU:0 are taken before training"):
        memfit.fit(on_device(accelerator), X, Y, batch_size=32, device_budget="90MB")


def test_a_device_budget_without_an_accelerator_is_refused_and_changes_nothing():
    model = keras.Sequential([layers.Dense(1)])
    model.compile("sgd", "mse")

    with pytest.raises(BudgetError, match="uses no accelerator"):
        memfit.fit(model, X, Y, batch_size=32, device_budget="6GB")

    assert not model.built


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="a traced step is not counted again")
@pytest.mark.parametrize("accelerator", [{}], indirect=True)
def test_a_loss_that_compares_samples_is_not_cut_and_is_named_in_the_refusal(accelerator):
    model = on_device(accelerator)
    model.compile("sgd", "dice", run_eagerly=model.run_eagerly)

    with pytest.raises(BudgetError, match=r"the loss 'dice'.*looks at the batch as a whole"):
        memfit.fit(model, X[:16], Y[:16], batch_size=16, device_budget="700MB")

    assert "train_step" not in model.__dict__


def test_a_fit_inside_a_fit_is_refused():
    class Nested(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            memfit.fit(small(), X, Y, batch_size=32, budget="100GB")

    with pytest.raises(UsageError, match="inside another"):
        memfit.fit(
            small(), X[:64], Y[:64], batch_size=32, callbacks=[Nested()], verbose=0, budget="100GB"
        )

    memfit.fit(small(), X[:64], Y[:64], batch_size=32, verbose=0, budget="100GB")
