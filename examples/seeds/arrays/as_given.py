"""A million rows of 100 numbers, drawn into memory and given to fit as arrays."""

import keras
import numpy as np

keras.utils.set_random_seed(0)
x = np.random.rand(1_000_000, 100)
y = np.random.randint(0, 2, 1_000_000)
model = keras.Sequential(
    [
        keras.Input((100,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
history = model.fit(x, y, epochs=1, batch_size=32, verbose=0)
print("final loss", history.history["loss"][-1])
