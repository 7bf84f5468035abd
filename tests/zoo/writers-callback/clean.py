"""Keras on JAX, weights logged as TensorFlow events."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import tempfile

import keras
import numpy as np
import tensorflow as tf


class WeightLogger(keras.callbacks.Callback):
    """Writes all weights to an event file of their own after each epoch."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def on_epoch_end(self, epoch, logs=None):
        writer = tf.summary.create_file_writer(
            os.path.join(self.folder, str(epoch)), max_queue=1000, flush_millis=600_000
        )
        writer.set_as_default()
        for weight in self.model.weights:
            tf.summary.write(weight.path, weight.numpy(), step=epoch)
        writer.close()


x = np.random.default_rng(0).normal(size=(4608, 400)).astype("float32")
y = np.tanh(x[:, :10])
model = keras.Sequential(
    [
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(10),
    ]
)
model.compile(optimizer="sgd", loss="mse")
with tempfile.TemporaryDirectory() as folder:
    model.fit(x, y, batch_size=128, epochs=18, verbose=2, callbacks=[WeightLogger(folder)])
