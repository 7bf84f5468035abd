"""Streams in Keras's own loops. Run by tests/backends/test_each_backend.py."""

import gc
import json
import threading

import keras
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from keras import layers, ops

import memfit

BACKEND = keras.backend.backend()
NUM_ROWS, WIDTH, BATCH = 500, 6, 32
NUM_BATCHES = 16
COLOURS = ("red", "green", "blue")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Row `i` begins with `i`, and so does its label."""
    folder = tmp_path_factory.mktemp("data")
    x = np.random.default_rng(0).standard_normal((NUM_ROWS, WIDTH)).astype("float32")
    x[:, 0] = np.arange(NUM_ROWS)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", x[:, 0].copy())
    return folder / "x.npy", folder / "y.npy"


def make_stream(files, **options):
    return memfit.stream(files, **{"batch_size": BATCH, "shuffle": True, "seed": 3, **options})


class Watching(keras.callbacks.Callback):
    """Notes where the stream stands after every step."""

    def __init__(self, data):
        super().__init__()
        self.data = data
        self.positions = []

    def on_train_batch_end(self, batch, logs=None):
        state = self.data.state()
        self.positions.append((state["epoch"], state["batch"]))


class Noting(keras.layers.Layer):
    """Keeps the first feature of the rows that it sees, in their order."""

    def build(self, shape):
        self.seen = self.add_weight(shape=(4 * NUM_ROWS,), trainable=False, initializer="zeros")

    def call(self, x, training=False):
        if training:
            # The newest are added at the end; 1 is added to tell row 0 from nothing.
            self.seen.assign(ops.concatenate([self.seen, x[:, 0] + 1])[-4 * NUM_ROWS :])
        return x


def make_model(build=True):
    noting = Noting()
    model = keras.Sequential([noting, layers.Dense(1)])
    if build:
        model.build((None, WIDTH))
    model.compile(keras.optimizers.SGD(0.0), "mse")

    def seen():
        noted = ops.convert_to_numpy(noting.seen).astype(int)
        return (noted[noted > 0] - 1).tolist()

    return model, seen


def rows_of(data, epochs=1):
    return [int(one) for _ in range(epochs) for _, y in data for one in y]


def after(*epochs):
    """Every position after a step in these epochs."""
    return [
        (epoch, batch) if batch < NUM_BATCHES else (epoch + 1, 0)
        for epoch in epochs
        for batch in range(1, NUM_BATCHES + 1)
    ]


@pytest.mark.parametrize("build", [True, False])
def test_fit_sees_the_rows_in_the_order_of_the_stream(files, build):
    model, seen = make_model(build)

    model.fit(make_stream(files), epochs=3, verbose=0)

    assert seen() == rows_of(make_stream(files), epochs=3)


def test_the_state_counts_the_batches_that_steps_have_used(files):
    data = make_stream(files)
    watching = Watching(data)

    make_model(build=False)[0].fit(data, epochs=2, verbose=0, callbacks=[watching])

    assert watching.positions == after(0, 1)


@pytest.mark.filterwarnings("error:Your input ran out of data")
def test_fit_goes_on_in_the_middle_of_an_epoch(files):
    whole = rows_of(make_stream(files), epochs=3)
    before = make_stream(files)
    before.restore({**before.state(), "epoch": 1, "batch": 5})

    data = make_stream(files, seed=7)
    data.restore(json.loads(json.dumps(before.state())))
    watching = Watching(data)
    model, seen = make_model(build=False)
    model.fit(data, epochs=2, verbose=0, callbacks=[watching])

    assert len(data) == NUM_BATCHES
    assert seen() == whole[NUM_ROWS + 5 * BATCH :]
    assert watching.positions == after(1, 2)[5:]


def test_evaluate_is_that_of_the_arrays(files):
    model, _ = make_model()
    x, y = (np.load(path) for path in files)

    assert model.evaluate(make_stream(files), verbose=0) == pytest.approx(
        model.evaluate(x, y, batch_size=BATCH, verbose=0), rel=1e-5
    )


def test_predict_keeps_the_order_of_the_file(files):
    model, _ = make_model()

    predicted = model.predict(memfit.stream(files[0], batch_size=BATCH), verbose=0)

    assert predicted == pytest.approx(model.predict(np.load(files[0]), verbose=0), rel=1e-5)


def test_training_and_validation_are_the_halves_of_a_split(files):
    train, validation = make_stream(files).split(0.8)
    model, seen = make_model()

    history = model.fit(train, validation_data=validation, epochs=2, verbose=0).history

    assert len(history["val_loss"]) == 2
    assert sorted(seen()[:400]) == sorted(seen()[400:])
    assert not set(seen()) & set(rows_of(validation))


def test_short_epochs_go_on_through_the_stream(files):
    data = make_stream(files)
    model, seen = make_model()

    model.fit(data, epochs=4, steps_per_epoch=4, verbose=0)

    assert seen() == rows_of(make_stream(files))


@pytest.mark.skipif(BACKEND == "torch", reason="Keras has steps_per_execution=1 only on torch")
def test_several_steps_at_a_time_see_the_same_rows(files):
    model, seen = make_model(build=False)
    model.compile(keras.optimizers.SGD(0.0), "mse", steps_per_execution=4)

    model.fit(make_stream(files), epochs=2, verbose=0)

    assert seen() == rows_of(make_stream(files), epochs=2)


def test_several_inputs_and_weights_get_to_their_places(files):
    left, right = keras.Input((WIDTH,), name="left"), keras.Input((WIDTH,), name="right")
    model = keras.Model([left, right], layers.Dense(1)(layers.subtract([left, right])))
    model.compile(keras.optimizers.SGD(0.0), "mse")
    weights = np.linspace(0, 1, NUM_ROWS, dtype="float32")
    x, y = (np.load(path) for path in files)

    data = memfit.stream(
        ({"left": files[0], "right": files[0]}, files[1], weights), batch_size=BATCH
    )

    expected = model.evaluate({"left": x, "right": x}, y, BATCH, sample_weight=weights, verbose=0)
    assert model.evaluate(data, verbose=0) == pytest.approx(expected, rel=1e-5)


def test_class_weights_are_refused_rather_than_forgotten(files):
    with pytest.raises(memfit.UsageError, match="Keras ignores class_weight of fit"):
        make_model()[0].fit(make_stream(files), class_weight={0: 1.0}, verbose=0)


def test_an_error_while_reading_ends_fit(files, tmp_path):
    np.save(tmp_path / "x.npy", np.load(files[0]))
    data = make_stream((tmp_path / "x.npy", files[1]))
    (tmp_path / "x.npy").write_bytes(b"something else")

    with pytest.raises(Exception, match=r"x\.npy has changed since the stream was made"):
        make_model()[0].fit(data, verbose=0)


def test_no_thread_is_left_when_training_is_stopped(files):
    class Stopping(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = batch == 3

    model, _ = make_model()
    model.fit(make_stream(files), epochs=2, verbose=0, callbacks=[Stopping()])
    gc.collect()

    assert not [one for one in threading.enumerate() if one.name == "memfit-stream"]


def test_a_loop_gives_arrays_and_a_look_does_not_count(files):
    data = make_stream(files)

    x, y = next(iter(data))

    assert isinstance(x, np.ndarray)
    assert np.array_equal(x[:, 0], y)
    assert np.array_equal(data[0][1], y)
    assert data.state()["batch"] == 0


def test_a_stream_says_what_it_is(files):
    assert str(make_stream(files)) == (
        "memfit stream: 500 rows, 14.0 kB: x float32 (6,), y float32 ()\n"
        "16 batches of 32, shuffled with seed 3, deff 1.00\n"
        "windows of 500 rows, 14.0 kB; at most 3.10 MB of 256 MB\n"
        "next: epoch 0, batch 0"
    )


def test_the_framework_gets_the_same_batches_by_its_own_means(files):
    if BACKEND == "jax":
        pytest.skip("JAX has no loaders of its own")
    data = make_stream(files)
    loader = data.to_tf() if BACKEND == "tensorflow" else data.to_torch()

    found = [int(one) for _ in range(2) for _, y in loader for one in ops.convert_to_numpy(y)]

    assert found == rows_of(make_stream(files), epochs=2)


def test_batches_may_be_mapped_on_the_way(files):
    def widen(x, y):
        return np.concatenate([x, x], axis=1).astype("float32"), y[:, None] * 0 + 3

    data = make_stream(files, map=widen)
    model = keras.Sequential([layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.0), "mae")

    model.fit(data, epochs=2, verbose=0)

    assert model.layers[0].kernel.shape == (2 * WIDTH, 1)
    assert data.state()["epoch"] == 2
    assert model.predict(data, verbose=0).shape == (NUM_ROWS, 1)


def test_classes_weigh_as_in_fit_on_arrays(files):
    x, labels = np.load(files[0]), (np.arange(NUM_ROWS) % 3 == 0).astype("int32")
    weights = {0: 0.5, 1: 4.0}

    def losses(*data, **options):
        keras.utils.set_random_seed(1)
        model = keras.Sequential([layers.Rescaling(0.01), layers.Dense(2, "softmax")])
        model.compile(keras.optimizers.SGD(0.1), "sparse_categorical_crossentropy")
        return model.fit(*data, epochs=2, verbose=0, **options).history["loss"]

    ours = losses(memfit.stream((x, labels), batch_size=BATCH, class_weight=weights))
    theirs = losses(x, labels, batch_size=BATCH, shuffle=False, class_weight=weights)

    assert np.allclose(ours, theirs, rtol=1e-4)


def test_rows_drawn_by_weights_come_in_fit(files):
    data = make_stream(files, oversample=np.arange(NUM_ROWS) % 2)
    model, seen = make_model()

    model.fit(data, epochs=2, verbose=0)

    rows = seen()
    assert len(rows) == 2 * NUM_ROWS
    assert set(rows) == set(range(1, NUM_ROWS, 2))
    assert rows == rows_of(make_stream(files, oversample=np.arange(NUM_ROWS) % 2), epochs=2)


def make_sequences():
    """Row `i` is `i + 1`, 4, 12 or 20 times; its label is `i` modulo 2."""
    for at in range(NUM_ROWS):
        yield np.full(4 + 8 * (at % 3), at + 1, "float32"), np.float32(at % 2)


def firsts_of(data, epochs=1):
    return [int(one) - 1 for _ in range(epochs) for x, *_ in data for one in x[:, 0]]


@pytest.mark.filterwarnings("error:Your input ran out of data")
def test_fit_sees_sequences_of_similar_length_together(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data, same = (
        memfit.stream(make_sequences, tokens=128, shuffle=True, budget="3.1MB") for _ in range(2)
    )
    assert data._loader.mixing.window_rows < NUM_ROWS
    noting, watching = Noting(), Watching(data)
    inputs = keras.Input((None,))
    outputs = layers.Dense(1)(ops.mean(noting(inputs), axis=1, keepdims=True))
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.SGD(0.0), "mse")

    model.fit(data, epochs=2, verbose=0, callbacks=[watching])

    noted = ops.convert_to_numpy(noting.seen).astype(int)
    assert (noted[noted > 0] - 2).tolist() == firsts_of(same, epochs=2)
    assert watching.positions[len(data) - 1 :: len(data)] == [(1, 0), (2, 0)]
    assert len(watching.positions) == 2 * len(data)


def test_sequences_are_weighed_and_mapped_and_parted(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data = memfit.stream(
        make_sequences,
        tokens=128,
        shuffle=True,
        class_weight={1: 3.0},
        map=lambda x, y, weight: (x / 2, y, weight * 2),
    )
    train, validation = data.split(0.7)

    for x, y, weight in train:
        assert x.size <= 128
        assert np.array_equal(x[:, 0] * 2 % 2 == 0, y == 1)
        assert np.array_equal(weight, np.where(y == 1, 6, 2))
    assert {float(one) for _, _, weight in validation for one in weight} == {2.0}
    assert sum(len(y) for half in (train, validation) for _, y, _ in half) == NUM_ROWS
    assert "batches of at most 128 tokens, shuffled" in str(data)
    with pytest.raises(memfit.UsageError, match="Give batch_size instead of tokens, or class_w"):
        memfit.stream(make_sequences, tokens=128, oversample={0: 1, 1: 9})


def make_colours():
    for at in range(60):
        yield COLOURS[at % 3], np.float32(at % 3 == 0)


def make_reader(*looked_up):
    """A model that learns which colour is which."""
    model = keras.Sequential([*looked_up, layers.Embedding(4, 2), layers.Dense(1, "sigmoid")])
    model.compile(keras.optimizers.Adam(0.1), "binary_crossentropy")
    return model


def test_text_is_refused_where_there_are_no_tensors_of_it(monkeypatch, tmp_path):
    if BACKEND == "tensorflow":
        pytest.skip("TensorFlow has tensors of text")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    data = memfit.stream(make_colours, batch_size=8)

    with pytest.raises(memfit.UsageError, match=r"takes numbers only, and .* text \(<U"):
        make_reader().fit(data, verbose=0)


@pytest.mark.skipif(
    BACKEND != "tensorflow", reason="elsewhere Keras would load TensorFlow to look text up"
)
def test_text_is_looked_up_on_the_way_or_in_the_model(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    lookup = layers.StringLookup(vocabulary=COLOURS)
    numbers = memfit.stream(make_colours, batch_size=8, map=lambda x, y: (lookup(x), y))
    text = memfit.stream(make_colours, batch_size=8, shuffle=True)
    model = make_reader(keras.Input((), dtype="string"), lookup)

    assert next(iter(numbers))[0].tolist() == [1, 2, 3, 1, 2, 3, 1, 2]
    assert model.fit(text, epochs=20, verbose=0).history["loss"][-1] < 0.1


@pytest.mark.skipif(BACKEND != "torch", reason="they are numbers: one backend will do")
def test_categories_come_as_numbers_that_a_model_learns(tmp_path):
    colours, labels = zip(*make_colours(), strict=True)
    table = {"colour": pa.array(colours).dictionary_encode(), "is_red": labels}
    pq.write_table(pa.table(table), tmp_path / "colours.parquet")

    data = memfit.stream(tmp_path / "colours.parquet", batch_size=8, label="is_red", shuffle=True)

    assert data.categories == {"colour": COLOURS}
    assert make_reader().fit(data, epochs=20, verbose=0).history["loss"][-1] < 0.1
