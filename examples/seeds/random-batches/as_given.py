"""A generator that chooses which rows to take, and then draws others: the choice is not used."""

import keras
import numpy as np

ROWS, BATCH = 10_000, 32


def draw_batches():
    while True:
        chosen = np.random.choice(ROWS, size=BATCH, replace=False)  # noqa: F841  # as given
        x = np.random.rand(BATCH, 100).astype("float32")
        yield x, np.random.randint(0, 10, size=BATCH)


keras.utils.set_random_seed(0)
model = keras.Sequential(
    [
        keras.Input((100,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(draw_batches(), steps_per_epoch=ROWS // BATCH, epochs=7, verbose=0)
print("final loss", history.history["loss"][-1])
