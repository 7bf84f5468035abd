import os

os.environ["KERAS_BACKEND"] = "torch"

import gc
import tempfile

import keras
import matplotlib as mpl
import numpy as np

mpl.use("Agg")
from matplotlib import pyplot as plt


class Recorder(keras.callbacks.Callback):
    def __init__(self, x):
        super().__init__()
        self.x = x
        self.predictions = []

    def on_epoch_end(self, epoch, logs=None):
        self.predictions = [self.model.predict(self.x, verbose=0)]


class Histogram(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        figure = plt.figure(figsize=(8, 8))
        for weight in self.model.trainable_weights[::2]:
            plt.hist(keras.ops.convert_to_numpy(weight).ravel(), bins=50)
        figure.savefig(tempfile.TemporaryFile())
        plt.close(figure)
        gc.collect()


x = np.random.default_rng(0).normal(size=(6000, 64)).astype("float32")
y = np.tile(x, 8)
model = keras.Sequential(
    [
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(512),
    ]
)
model.compile(optimizer="adam", loss="mse")
model.fit(x, y, batch_size=250, epochs=19, verbose=2, callbacks=[Recorder(x), Histogram()])
