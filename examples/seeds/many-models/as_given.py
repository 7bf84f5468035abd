"""Twenty models in a loop, with clear_session after each: where that remedy is told most."""

import keras
import numpy as np

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
    loss = train()
    keras.utils.clear_session()
print("final loss", loss)
