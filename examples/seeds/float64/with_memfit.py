"""The same rows from a file, within 32 MB."""

from pathlib import Path

import keras

import memfit

DATA = Path(__file__).parents[1] / "data"

keras.utils.set_random_seed(0)
rows = memfit.stream(
    (DATA / "x.npy", DATA / "y.npy"), batch_size=1_024, shuffle=True, budget="32MB"
)
model = keras.Sequential(
    [
        keras.Input((100,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy")
history = model.fit(rows, epochs=2, verbose=0)
print("final loss", history.history["loss"][-1])
