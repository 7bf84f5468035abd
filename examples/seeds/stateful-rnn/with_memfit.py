"""The stateful LSTM with a monitor, which says whether its memory grows."""

import keras
import numpy as np

import memfit

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
monitor = memfit.MemoryMonitor()
history = model.fit(x, y, batch_size=64, epochs=10, shuffle=False, callbacks=[monitor], verbose=0)
print("final loss", history.history["loss"][-1])
