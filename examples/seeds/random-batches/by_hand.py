"""Rows that exist, permuted anew each epoch: every row once, the last short batch too."""

import keras
import numpy as np

BATCH, EPOCHS = 32, 7

keras.utils.set_random_seed(0)
x = np.random.rand(10_000, 100).astype("float32")
y = np.random.randint(0, 10, 10_000)


def take_batches():
    for _ in range(EPOCHS):
        order = np.random.permutation(len(x))
        for begin in range(0, len(x), BATCH):
            chosen = order[begin : begin + BATCH]
            yield x[chosen], y[chosen]


model = keras.Sequential(
    [
        keras.Input((100,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
steps = -(-len(x) // BATCH)
history = model.fit(take_batches(), steps_per_epoch=steps, epochs=EPOCHS, verbose=0)
print("final loss", history.history["loss"][-1])
