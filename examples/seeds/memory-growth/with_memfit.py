"""One line for every framework; it says what it set, or that there is no accelerator."""

import keras
import numpy as np

import memfit

print(memfit.configure(on_demand=True))
keras.utils.set_random_seed(0)
x = np.random.rand(10_000, 100).astype("float32")
y = np.random.randint(0, 10, 10_000)
model = keras.Sequential(
    [
        keras.Input((100,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
history = model.fit(x, y, batch_size=32, epochs=7, verbose=0)
print("final loss", history.history["loss"][-1])
