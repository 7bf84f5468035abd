"""A session around the whole training: at its end the model goes, and settings stay."""

import keras
import numpy as np

import memfit

keras.utils.set_random_seed(0)
x = np.random.rand(10_000, 100).astype("float32")
y = np.random.randint(0, 10, 10_000)
with memfit.session():
    model = keras.Sequential(
        [
            keras.Input((100,)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
    history = model.fit(x, y, batch_size=32, epochs=10, verbose=0).history
print("final loss", history["loss"][-1])
