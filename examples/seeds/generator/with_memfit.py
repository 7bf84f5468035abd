"""A generator with an end: memfit reads it once into a cache on disk and shuffles single rows."""

import keras
import numpy as np

import memfit


def draw_batches():
    rng = np.random.default_rng(0)
    for _ in range(1_000):
        yield rng.random((1_000, 100), dtype="float32"), rng.integers(0, 2, 1_000)


keras.utils.set_random_seed(0)
rows = memfit.stream(memfit.batches(draw_batches), batch_size=32, shuffle=True, budget="32MB")
model = keras.Sequential(
    [
        keras.Input((100,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
history = model.fit(rows, epochs=1, verbose=0)
print("final loss", history.history["loss"][-1])
