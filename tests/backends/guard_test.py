"""A guarded training in which nothing happens. Run by tests/backends/test_each_backend.py.

Where memory runs out: tests/backends/test_guard.py.
"""

import keras
import numpy as np
import pytest
from keras import layers

from conftest import compile_options
from memfit.errors import UsageError
from memfit.fitting.fit import fit
from memfit.fitting.levers.guard import guard
from memfit.fitting.levers.micro_batches import split

BACKEND = keras.backend.backend()
RNG = np.random.default_rng(0)
X = RNG.standard_normal((44, 8)).astype("float32")
Y = np.eye(3, dtype="float32")[RNG.integers(0, 3, 44)]


def build(**options):
    """A model with everything that a step changes."""
    keras.utils.set_random_seed(1)
    frozen = layers.Dense(8, trainable=False)
    model = keras.Sequential(
        [
            keras.Input((8,)),
            frozen,
            layers.Dense(16, "tanh"),
            layers.BatchNormalization(),
            layers.Dropout(0.3, seed=1),
            layers.Dense(3, "softmax"),
        ]
    )
    optimizer = keras.optimizers.SGD(0.1, momentum=0.9)
    how = compile_options(metrics=["accuracy"], **options)
    model.compile(optimizer, "categorical_crossentropy", **how)
    return model


def state(model):
    variables = [*model.variables, *model.optimizer.variables]
    return [np.array(keras.ops.convert_to_numpy(one.value)) for one in variables]


def assert_same(ours, theirs, within=1e-6):
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=within, atol=within)


@pytest.mark.parametrize(
    "options",
    [
        {"run_eagerly": False},
        pytest.param({"run_eagerly": True}, marks=[pytest.mark.long] * (BACKEND == "jax")),
        pytest.param(
            {"steps_per_execution": 2},
            marks=pytest.mark.skipif(BACKEND == "torch", reason="Keras has none on torch"),
        ),
        pytest.param(
            {"jit_compile": True},
            marks=[
                pytest.mark.long,
                pytest.mark.skipif(BACKEND != "tensorflow", reason="XLA on TensorFlow only"),
            ],
        ),
    ],
    ids=str,
)
def test_a_training_without_trouble_is_as_without_the_guard(options):
    def fit(model):
        how = {"batch_size": 10, "epochs": 2, "validation_split": 0.2, "shuffle": False}
        history = model.fit(X[:34], Y[:34], verbose=0, **how).history
        return history, model.evaluate(X[:10], Y[:10], verbose=0)

    plain, guarded = build(**options), build(**options)
    theirs = fit(plain)
    with guard(guarded):
        ours = fit(guarded)

    assert_same(state(guarded), state(plain))
    assert ours[0] == {name: pytest.approx(one, rel=1e-5) for name, one in theirs[0].items()}
    assert ours[1] == pytest.approx(theirs[1], rel=1e-5)


def test_single_batches_are_as_without_the_guard():
    plain, guarded = build(), build()
    guard(guarded)

    for _ in range(2):
        ours = guarded.train_on_batch(X, Y, class_weight={0: 1.0, 1: 2.0, 2: 0.5})
        theirs = plain.train_on_batch(X, Y, class_weight={0: 1.0, 1: 2.0, 2: 0.5})
    assert ours == pytest.approx(theirs, rel=1e-5)
    assert guarded.test_on_batch(X, Y) == pytest.approx(plain.test_on_batch(X, Y), rel=1e-5)
    assert_same(state(guarded), state(plain))


def test_a_data_source_without_a_length_ends_the_epoch():
    def batches():
        for begin in range(0, 40, 10):
            yield X[begin : begin + 10], Y[begin : begin + 10]

    plain, guarded = build(), build()
    plain.fit(batches(), verbose=0)
    with guard(guarded):
        guarded.fit(batches(), verbose=0)

    # Not the seeds: on TensorFlow, Keras also draws for the batch that does not come.
    assert_same(guarded.get_weights(), plain.get_weights())


def test_micro_batches_may_be_given_to_begin_with():
    def make():
        keras.utils.set_random_seed(1)
        model = keras.Sequential([keras.Input((8,)), layers.Dense(3, "softmax")])
        model.compile(keras.optimizers.SGD(0.1), "categorical_crossentropy")
        return model

    plain, guarded = make(), make()
    plain.fit(X, Y, batch_size=10, verbose=0, shuffle=False)
    with guard(guarded, size=4):
        guarded.fit(X, Y, batch_size=10, verbose=0, shuffle=False)

    assert_same(state(guarded), state(plain), within=1e-5)


class Wrong(keras.losses.Loss):
    def call(self, y_true, y_pred):
        raise LookupError("out of memory, says no framework")


def test_other_errors_pass_and_leave_the_model_whole():
    model = build()
    model.compile(keras.optimizers.SGD(0.1), Wrong())
    before = model.get_weights()

    with guard(model), pytest.raises(LookupError) as caught:
        model.train_on_batch(X, Y)

    assert not any("memfit" in note for note in getattr(caught.value, "__notes__", []))
    assert_same(model.get_weights(), before, within=0)


class TooLarge(keras.losses.Loss):
    is_armed = False

    def call(self, y_true, y_pred):
        if self.is_armed:
            np.empty(2**55)  # more than any machine has
        return keras.ops.mean(keras.ops.square(y_true - y_pred), axis=-1)


@pytest.mark.parametrize(
    ("allow", "said"),
    [
        ((), "not even two samples of the first batch fit"),
        (("unverified",), "in micro-batches of 4, 2, 1; not even one sample fits. The model is"),
    ],
)
def test_where_one_sample_does_not_fit_the_error_says_what_was_tried(allow, said):
    loss = TooLarge()
    model = keras.Sequential([keras.Input((8,)), layers.Dense(3)])
    model.compile("sgd", loss, run_eagerly=True)
    with guard(model, allow=allow):
        model.train_on_batch(X[:4], Y[:4])  # Keras looks at the loss before it trains
        before = model.get_weights()
        loss.is_armed = True

        with pytest.raises(MemoryError) as caught:
            model.train_on_batch(X[:4], Y[:4])

    assert any(said in note for note in caught.value.__notes__)
    assert_same(model.get_weights(), before, within=0)


def test_a_guard_is_printed_and_undone():
    model = build()

    change = guard(model)
    assert "run again in smaller micro-batches" in str(change)
    change.undo()

    assert "make_train_function" not in model.__dict__
    assert model.train_function is None


def test_a_guarded_model_can_be_saved(tmp_path):
    model = build()
    guard(model)
    model.fit(X, Y, verbose=0)

    model.save(tmp_path / "model.keras")

    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert_same(loaded.get_weights(), model.get_weights(), within=0)


class OwnStep(keras.Model):
    def train_step(self, *args):
        raise NotImplementedError


class OwnFunction(keras.Model):
    def make_train_function(self, force=False):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("kind", "message"),
    [(OwnStep, "train_step of its own"), (OwnFunction, "make_train_function of its own")],
)
def test_what_cannot_be_guarded_is_refused_with_the_reason(kind, message):
    model = kind()
    model.compile("sgd", "mse")

    with pytest.raises(UsageError, match=message):
        guard(model)


def test_a_guard_stands_alone():
    x, y = RNG.standard_normal((8, 4)), RNG.standard_normal((8, 1))
    model = keras.Sequential([keras.Input((4,)), layers.Dense(1)])
    model.compile("sgd", "mse")

    with guard(model):
        for change in (guard, lambda one: split(one, 4)):
            with pytest.raises(UsageError, match="is guarded"):
                change(model)
        with pytest.raises(UsageError, match="is guarded"):
            fit(model, x, y, batch_size=8, budget="100GB")
    with split(model, 4), pytest.raises(UsageError, match="in micro-batches already"):
        guard(model)
