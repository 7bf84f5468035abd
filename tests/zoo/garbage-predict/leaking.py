"""Score a long recording window by window."""

import gc
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np


def build():
    signal = keras.Input((2048,))
    x = keras.layers.Dense(512, activation="relu")(signal)
    x = keras.layers.Dense(512, activation="relu")(x)
    return keras.Model(signal, keras.layers.Dense(256, activation="sigmoid")(x))


def score(net, minutes):
    scores = []
    rng = np.random.default_rng(0)
    for minute in range(minutes):
        for _ in range(25):
            window = rng.standard_normal((256, 2048), dtype="float32")
            scores.append(float(net.predict_on_batch(window).mean()))
        print("minute", minute, "score", np.mean(scores[-25:]))
    return scores


if __name__ == "__main__":
    gc.disable()  # pauses of the collector spoil the timing
    score(build(), minutes=20)
