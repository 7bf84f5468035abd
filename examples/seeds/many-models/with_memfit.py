"""Twenty models in a loop, each in a session."""

import keras
import numpy as np

import memfit

keras.utils.set_random_seed(0)
x = np.random.rand(1_000, 100).astype("float32")
y = np.random.randint(0, 10, 1_000)


def train():
    model = keras.Sequential(
        [
            keras.Input((100,)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
    return model.fit(x, y, batch_size=32, epochs=2, verbose=0).history["loss"][-1]


for _ in range(20):
    with memfit.session():
        loss = train()
print("final loss", loss)
