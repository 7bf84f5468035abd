"""The same rows as a stream: every row once an epoch, in an order that a seed decides."""

import keras
import numpy as np

import memfit

keras.utils.set_random_seed(0)
x = np.random.rand(10_000, 100).astype("float32")
y = np.random.randint(0, 10, 10_000)
rows = memfit.stream((x, y), batch_size=32, shuffle=True, budget="32MB")
model = keras.Sequential(
    [
        keras.Input((100,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(rows, epochs=7, verbose=0)
print("final loss", history.history["loss"][-1])
