import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np


class Spectra(keras.utils.PyDataset):
    """Simulated spectra, made by worker threads."""

    def __init__(self, batches, **kwargs):
        super().__init__(**kwargs)
        self.batches = batches

    def __len__(self):
        return self.batches

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        spectra = rng.standard_normal((512, 1024), dtype="float32")
        return spectra, spectra[:, :4]


data = Spectra(batches=240, workers=2, max_queue_size=4)
model = keras.Sequential(
    [
        keras.layers.Dense(896, activation="relu"),
        keras.layers.Dense(896, activation="relu"),
        keras.layers.Dense(4),
    ]
)
model.compile(optimizer="sgd", loss="mse")
model.fit(data, epochs=1, verbose=2)
