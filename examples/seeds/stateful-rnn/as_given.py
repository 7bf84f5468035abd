"""An LSTM that keeps its state from batch to batch, said to grow with every epoch."""

import keras
import numpy as np

keras.utils.set_random_seed(0)
x = np.random.rand(1_024, 50, 16).astype("float32")
y = x.mean(axis=(1, 2))
model = keras.Sequential(
    [
        keras.Input((50, 16), batch_size=64),
        keras.layers.LSTM(32, stateful=True),
        keras.layers.Dense(1),
    ]
)
model.compile(optimizer="adam", loss="mse")
history = model.fit(x, y, batch_size=64, epochs=10, shuffle=False, verbose=0)
print("final loss", history.history["loss"][-1])
