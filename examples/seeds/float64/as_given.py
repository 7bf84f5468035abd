"""A million rows in float64, which is what NumPy draws unless told otherwise."""

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
model.compile(optimizer="adam", loss="binary_crossentropy")
history = model.fit(x, y, batch_size=1_024, epochs=2, verbose=0)
print("final loss", history.history["loss"][-1])
