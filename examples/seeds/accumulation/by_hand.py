"""Accumulation put right: weighted by samples, the tail applied, rows shuffled before batching."""

import keras
import numpy as np
import tensorflow as tf

BATCH, PARTS, EPOCHS = 32, 4, 7

keras.utils.set_random_seed(0)
x = np.random.rand(10_000, 100).astype("float32")
y = np.random.randint(0, 10, 10_000)
model = keras.Sequential(
    [
        keras.Input((100,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
optimizer = keras.optimizers.Adam()
loss_fn = keras.losses.SparseCategoricalCrossentropy()
sums = [tf.Variable(tf.zeros_like(weight)) for weight in model.trainable_variables]


@tf.function
def add_part(features, labels, share):
    with tf.GradientTape() as tape:
        loss = loss_fn(labels, model(features, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    for total, gradient in zip(sums, gradients, strict=True):
        total.assign_add(share * gradient)
    return loss


@tf.function
def update():
    optimizer.apply_gradients(zip(sums, model.trainable_variables, strict=True))
    for total in sums:
        total.assign(tf.zeros_like(total))


rows = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x))
for _ in range(EPOCHS):
    losses = []
    for features, labels in rows.batch(BATCH * PARTS):
        for begin in range(0, len(labels), BATCH):
            part = slice(begin, begin + BATCH)
            share = tf.constant(len(labels[part]) / len(labels), tf.float32)
            losses.append(float(add_part(features[part], labels[part], share)))
        update()
print("final loss", np.mean(losses))
