"""
Title: A linear warm-up in a custom training loop
Description: A small classifier on synthetic digits with a hand-written update rule.
"""

import keras
import numpy as np
import tensorflow as tf

batch_size = 64
epochs = 20
peak_learning_rate = 0.1

rng = np.random.default_rng(0)
x_train = rng.normal(size=(640, 784)).astype("float32")
y_train = rng.integers(0, 10, size=640)
train_dataset = tf.data.Dataset.from_tensor_slices((x_train, y_train)).batch(batch_size)

inputs = keras.Input(shape=(784,), name="digits")
x = keras.layers.Dense(64, activation="relu")(inputs)
x = keras.layers.Dense(64, activation="relu")(x)
x = keras.layers.Dense(64, activation="relu")(x)
outputs = keras.layers.Dense(10, name="predictions")(x)
model = keras.Model(inputs=inputs, outputs=outputs)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(x, y, learning_rate):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss_value = loss_fn(y, logits)
    grads = tape.gradient(loss_value, model.trainable_weights)
    for weight, grad in zip(model.trainable_weights, grads, strict=True):
        weight.assign_sub(learning_rate * grad)
    return loss_value


step = 0
total_steps = epochs * len(train_dataset)
for epoch in range(epochs):
    for x_batch, y_batch in train_dataset:
        step += 1
        learning_rate = peak_learning_rate * step / total_steps
        loss = train_step(x_batch, y_batch, learning_rate)
    print(f"epoch {epoch}: loss {float(loss):.4f}")
