"""A training held at its first batch. Run by tests/backends/test_each_backend.py."""

import random

import keras
import numpy as np
import pytest
from keras import layers

from memfit.backends import load
from memfit.errors import UsageError
from memfit.fitting.levers.change import forget_functions
from memfit.fitting.state.saved_state import Snapshot

BACKEND = keras.backend.backend()
X = np.random.default_rng(0).standard_normal((24, 6)).astype("float32")
Y = X[:, :1] * 2
W = np.linspace(0.5, 2, 24).astype("float32")


def make(**compiled):
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((6,)),
            layers.Dense(5, "relu"),
            layers.BatchNormalization(),
            layers.Dropout(0.3),
            layers.Dense(1),
        ]
    )
    model.compile("adam", "mse", metrics=["mae"], **compiled)
    return model


class Rows(keras.utils.PyDataset):
    """Draws random numbers for each batch, so that one too many shows."""

    def __len__(self):
        return 3

    def __getitem__(self, index):
        rows = slice(8 * index, 8 * index + 8)
        return X[rows] + random.random() + np.random.random(), Y[rows]


def generate():
    for index in range(6):
        rows = slice(8 * (index % 3), 8 * (index % 3) + 8)
        yield X[rows] + random.random(), Y[rows], W[rows]


def tf_data():
    tf = pytest.importorskip("tensorflow")
    return tf.data.Dataset.from_tensor_slices((X, Y)).shuffle(24, seed=1).batch(8)


def loader():
    torch = pytest.importorskip("torch")
    torch.manual_seed(5)
    rows = torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(Y))
    return torch.utils.data.DataLoader(rows, batch_size=8, shuffle=True)


FED = {
    "arrays": lambda: {"x": X, "y": Y, "sample_weight": W, "batch_size": 10},
    "class weights": lambda: {"x": X, "y": (Y > 0) * 1, "class_weight": {0: 1.0, 1: 2.0}},
    "PyDataset": lambda: {"x": Rows()},
    "PyDataset, one worker": lambda: {"x": Rows(workers=1, max_queue_size=2)},
    "tf.data": lambda: {"x": tf_data()},
    "DataLoader": lambda: {"x": loader()},
    "generator": lambda: {"x": generate(), "steps_per_epoch": 3},
    "validation": lambda: {"x": X, "y": Y, "batch_size": 8, "validation_data": (X, Y)},
}


def train(model, fed):
    history = model.fit(**fed(), epochs=2, verbose=0)
    return history.history, model.get_weights(), random.random(), np.random.random()


def try_steps(model, batch, seen=None):
    """What a caller of a hold does: trains on the batch, and puts the state back."""
    x, y, weights = keras.utils.unpack_x_y_sample_weight(batch)
    x, y, weights = (
        None if part is None else keras.ops.convert_to_numpy(part).copy()
        for part in (x, y, weights)
    )
    with Snapshot(model):
        history = model.fit(x, y, sample_weight=weights, epochs=2, batch_size=4, verbose=0)
        model.stop_training = True
    if seen is not None:
        seen.append((x, history))


def hold(model, seen=None, **which):
    return load("first_step").hold(model, lambda batch: try_steps(model, batch, seen), **which)


def assert_equal(one, other):
    keras.tree.map_structure(np.testing.assert_array_equal, one, other)


def long_on_tensorflow(kind):
    """Tracing takes most of the time there, and these reach a step as others do."""
    is_long = BACKEND == "tensorflow" and kind in ("class weights", "validation", "DataLoader")
    return pytest.param(kind, marks=[pytest.mark.long] * is_long)


@pytest.mark.parametrize("kind", map(long_on_tensorflow, FED))
def test_a_held_training_goes_on_as_if_nothing_had_been(kind):
    plain = train(make(), FED[kind])
    model, seen = make(), []
    undo = hold(model, seen)

    assert_equal(train(model, FED[kind]), plain)
    assert len(seen) == 1
    assert len(seen[0][0]) == (10 if kind == "arrays" else 24 if "class" in kind else 8)
    assert model.history is not seen[0][1]
    undo()
    assert "make_train_function" not in model.__dict__


@pytest.mark.parametrize(
    "compiled",
    [
        pytest.param({"run_eagerly": True}, marks=[pytest.mark.long] * (BACKEND == "jax")),
        {"steps_per_execution": 2},
    ],
)
def test_steps_that_run_eagerly_or_several_at_once_are_held(compiled):
    if BACKEND == "torch" and "steps_per_execution" in compiled:
        pytest.skip("Keras on torch runs one step at a time")
    if BACKEND == "tensorflow" and "run_eagerly" in compiled:
        pytest.skip("the optimizer is built inside of the first step")
    plain = train(make(**compiled), FED["arrays"])
    model, seen = make(**compiled), []
    hold(model, seen)

    assert_equal(train(model, FED["arrays"]), plain)
    assert len(seen) == 1


def test_single_batches_are_held():
    plain = make()
    expected = [plain.train_on_batch(X, Y, sample_weight=W) for _ in range(3)]
    model, seen = make(), []
    hold(model, seen)

    assert_equal([model.train_on_batch(X, Y, sample_weight=W) for _ in range(3)], expected)
    assert_equal(model.get_weights(), plain.get_weights())
    assert len(seen) == 1


def test_evaluation_is_held():
    plain = make().evaluate(X, Y, batch_size=8, verbose=0)
    model, seen = make(), []
    hold(model, seen, which="test")

    assert_equal(model.evaluate(X, Y, batch_size=8, verbose=0), plain)
    assert len(seen) == 1


def test_it_is_called_again_when_the_step_is_another():
    model, seen = make(), []
    hold(model, seen)
    for expected in (1, 1):
        train(model, FED["arrays"])
        assert len(seen) == expected
    model.compile("sgd", "mae")
    train(model, FED["arrays"])
    assert len(seen) == 2
    forget_functions(model)
    train(model, FED["arrays"])
    assert len(seen) == 3
    if BACKEND != "jax":  # where Keras asks for another compile
        model.layers[1].trainable = False
        train(model, FED["arrays"])
        assert len(seen) == 4


def test_a_step_that_is_forgotten_inside_is_made_anew():
    plain = train(make(), FED["arrays"])
    model, seen = make(), []

    def on_first(batch):
        try_steps(model, batch, seen)
        forget_functions(model)

    load("first_step").hold(model, on_first)

    assert_equal(train(model, FED["arrays"]), plain)
    assert len(seen) == 1


def test_a_call_that_is_exchanged_is_run_though_what_was_compiled_before_lives_on():
    """JAX finds a trace by the method of the model, which is the same one afterwards."""
    model, called = make(), []
    model.fit(X, Y, batch_size=12, verbose=0)
    original, compiled_before = model.call, model.train_function

    def call(*args, **kwargs):
        called.append(1)
        return original(*args, **kwargs)

    model.call = call
    forget_functions(model)
    model.fit(X, Y, batch_size=12, verbose=0)

    assert called
    assert compiled_before is not model.train_function


def test_an_error_arrives_and_the_model_is_as_before():
    model = make()
    before = model.get_weights()

    def refuse(batch):
        raise KeyError("no")

    load("first_step").hold(model, refuse)
    for _ in range(2):  # it is asked again
        with pytest.raises(KeyError, match="no"):
            model.fit(X, Y, verbose=0)

    assert_equal(model.get_weights(), before)
    assert_equal(model.predict(X, verbose=0).shape, (24, 1))


def test_what_was_held_and_is_undone_trains():
    plain = train(make(), FED["arrays"])
    model, seen = make(), []
    undo = hold(model, seen)
    model.make_train_function()
    undo()

    assert_equal(train(model, FED["arrays"]), plain)
    assert seen == []


def test_a_hold_that_is_not_content_is_called_with_the_next_batch():
    model, seen = make(), []

    def on_first(batch):
        seen.append(batch)
        return len(seen) == 2

    load("first_step").hold(model, on_first)

    assert_equal(train(model, FED["arrays"]), train(make(), FED["arrays"]))
    assert len(seen) == 2


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_holds_are_called_in_turn_and_undone_in_any_order(order):
    plain = train(make(), FED["arrays"])
    model, called = make(), []
    undo = [
        load("first_step").hold(model, lambda batch: called.append("first")),
        load("first_step").hold(model, lambda batch: called.append("second")),
    ]

    assert_equal(train(model, FED["arrays"]), plain)
    assert called[:2] == ["first", "second"]
    undo[order[0]]()
    model.compile("sgd", "mae")
    called.clear()
    train(model, FED["arrays"])
    assert set(called) == {"second" if order[0] == 0 else "first"}
    undo[order[1]]()
    assert "make_train_function" not in model.__dict__


def test_a_model_that_makes_its_own_function_is_refused():
    class Own(keras.Model):
        def make_train_function(self, force=False):
            return super().make_train_function(force)

    model = Own()
    with pytest.raises(UsageError, match="Own has a make_train_function of its own"):
        hold(model)


@pytest.mark.skipif(BACKEND == "torch", reason="torch traces nothing")
@pytest.mark.parametrize("kind", ["arrays", "tf.data", "generator", "PyDataset"])
def test_the_step_is_traced_no_more_often_than_without(kind):
    def count(held):
        class Counted(keras.Model):
            traced = 0

            def train_step(self, *args):
                Counted.traced += 1
                return super().train_step(*args)

        keras.utils.set_random_seed(3)
        inputs = keras.Input((6,))
        model = Counted(inputs, layers.Dense(1)(inputs))
        model.compile("adam", "mse")
        if held:
            load("first_step").hold(model, lambda batch: None)
        train(model, FED[kind])
        return Counted.traced

    assert count(held=True) == count(held=False)
