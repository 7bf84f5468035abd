"""One update with 128 rows, whole and in four parts: how far the weights end from each other.

Prints a line for each optimizer and way: the largest difference of a weight from where a true
batch of 128 takes it, and the largest step that a weight takes there.
"""

import keras
import numpy as np

import memfit

BATCH, PARTS = 32, 4
OPTIMIZERS = {"adam": keras.optimizers.Adam, "sgd": keras.optimizers.SGD}

rng = np.random.default_rng(0)
x = rng.random((BATCH * PARTS, 100), dtype="float32")
y = rng.integers(0, 10, BATCH * PARTS)


def build(optimizer):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((100,)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(optimizer, "sparse_categorical_crossentropy")
    return model


def update_whole(name):
    model = build(OPTIMIZERS[name]())
    model.train_on_batch(x, y)
    return model


def update_with_memfit(name):
    model = build(OPTIMIZERS[name]())
    memfit.split(model, BATCH)
    model.train_on_batch(x, y)
    return model


def update_with_keras(name):
    model = build(OPTIMIZERS[name](gradient_accumulation_steps=PARTS))
    for begin in range(0, len(x), BATCH):
        model.train_on_batch(x[begin : begin + BATCH], y[begin : begin + BATCH])
    return model


def update_as_made_to_run(name):
    """The loop of made_to_run.py: gradients of means are summed, and the sum is applied."""
    import tensorflow as tf

    model = build(OPTIMIZERS[name]())
    loss_fn = keras.losses.SparseCategoricalCrossentropy()
    sums = [tf.Variable(tf.zeros_like(weight)) for weight in model.trainable_variables]
    for begin in range(0, len(x), BATCH):
        with tf.GradientTape() as tape:
            predictions = model(x[begin : begin + BATCH], training=True)
            loss = loss_fn(y[begin : begin + BATCH], predictions)
        gradients = tape.gradient(loss, model.trainable_variables)
        for total, gradient in zip(sums, gradients, strict=True):
            total.assign_add(gradient)
    model.optimizer.apply_gradients(zip(sums, model.trainable_variables, strict=True))
    return model


def differ(model, other):
    pairs = zip(model.get_weights(), other.get_weights(), strict=True)
    return max(float(np.abs(one - two).max()) for one, two in pairs)


ways = {"with memfit": update_with_memfit, "Keras's own": update_with_keras}
if keras.backend.backend() == "tensorflow":
    ways["made to run"] = update_as_made_to_run
for name, make in OPTIMIZERS.items():
    whole = update_whole(name)
    step = differ(build(make()), whole)
    for way, update in ways.items():
        print(f"update | {name} | {way} | {differ(update(name), whole):.1e} | {step:.1e}")
