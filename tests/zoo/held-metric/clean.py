"""Median absolute error as a metric (needs all predictions at once)."""

import keras
import numpy as np


class MedianError(keras.metrics.Metric):
    def __init__(self, name="median_error", **kwargs):
        super().__init__(name=name, **kwargs)
        self.scores = []

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.scores.append((y_true, y_pred))

    def result(self):
        if not self.scores:
            return 0.0
        truth, guess = self.scores[-1]
        return float(np.median(np.abs(np.asarray(truth) - np.asarray(guess))))

    def reset_state(self):
        self.scores.clear()


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2048, 64)).astype("float32")
    y = np.tile(x, (1, 12))
    model = keras.Sequential(
        [keras.layers.Dense(256, activation="relu"), keras.layers.Dense(y.shape[1])]
    )
    model.compile(optimizer="adam", loss="mae", metrics=[MedianError()], run_eagerly=True)
    model.fit(x, y, batch_size=128, epochs=18, verbose=2)
