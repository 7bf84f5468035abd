"""Uses every Keras call that memfit marks; the first argument is how much each epoch leaks."""

import sys

import keras
import numpy as np

leak_bytes = int(sys.argv[1])
epochs = int(sys.argv[2])
kept = []


class Keeper(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        kept.append(np.ones(leak_bytes, "u1"))


rng = np.random.default_rng(0)
x = rng.random((640, 16), dtype="float32")
y = rng.random((640, 1), dtype="float32")
model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
history = model.fit(
    x, y, batch_size=32, epochs=epochs, verbose=0, validation_split=0.5, callbacks=[Keeper()]
)
model.evaluate(x, y, verbose=0)
for _ in range(3):
    model.predict(x, verbose=0)
for _ in range(30):
    model.train_on_batch(x[:32], y[:32])
print("history", sorted(history.history))
