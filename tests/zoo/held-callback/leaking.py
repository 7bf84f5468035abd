"""
Title: Watching an autoencoder learn
Description: The reconstructions of a fixed set are recorded after each epoch.
"""

import keras
import numpy as np
from keras import layers


class PredictionLogger(keras.callbacks.Callback):
    def __init__(self, samples):
        super().__init__()
        self.samples = samples
        self.outputs = []

    def on_epoch_end(self, epoch, logs=None):
        self.outputs.append(self.model.predict(self.samples, verbose=0))


images = np.random.default_rng(0).random((3000, 784)).astype("float32")

inputs = keras.Input((784,))
encoded = layers.Dense(64, activation="relu")(inputs)
decoded = layers.Dense(784, activation="sigmoid")(encoded)
autoencoder = keras.Model(inputs, decoded)
autoencoder.compile(optimizer="adam", loss="binary_crossentropy")

logger = PredictionLogger(images)
autoencoder.fit(images, images, epochs=20, batch_size=64, verbose=2, callbacks=[logger])
print(f"{len(logger.outputs)} epochs recorded")
