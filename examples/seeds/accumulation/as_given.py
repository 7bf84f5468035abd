"""Gradient accumulation as it is given: `+=` on a tf.Variable is an error."""

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
counter = tf.Variable(0)


def train_step(features, labels):
    with tf.GradientTape() as tape:
        loss = loss_fn(labels, model(features, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    for i in range(len(gradients)):
        sums[i] += gradients[i]
    counter.assign_add(1)
    if tf.math.equal(counter, PARTS):
        optimizer.apply_gradients(zip(sums, model.trainable_variables))
        for total in sums:
            total.assign(tf.zeros_like(total))
        counter.assign(0)
    return loss


batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH).shuffle(len(x))
for _ in range(EPOCHS):
    losses = [float(train_step(features, labels)) for features, labels in batches]
print("final loss", np.mean(losses))
