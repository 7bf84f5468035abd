"""All the usual callbacks at once."""

import tempfile
from pathlib import Path

import keras
import numpy as np

rng = np.random.default_rng(1)
x = rng.normal(size=(3000, 40)).astype("float32")
y = x[:, :3].prod(axis=1) + 0.1 * rng.normal(size=3000)

inputs = keras.Input((40,))
hidden = keras.layers.Dense(256, activation="gelu")(inputs)
hidden = keras.layers.Dense(256, activation="gelu")(hidden)
model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
model.compile(optimizer=keras.optimizers.AdamW(1e-3), loss="mse", metrics=["mae"])

with tempfile.TemporaryDirectory() as folder:
    out = Path(folder)
    callbacks = [
        keras.callbacks.ModelCheckpoint(out / "best.keras", save_best_only=True),
        keras.callbacks.ModelCheckpoint(out / "{epoch:02d}.weights.h5", save_weights_only=True),
        keras.callbacks.EarlyStopping(patience=60, restore_best_weights=True),
        keras.callbacks.ReduceLROnPlateau(patience=5, factor=0.7),
        keras.callbacks.CSVLogger(out / "log.csv"),
        keras.callbacks.TerminateOnNaN(),
    ]
    model.fit(x, y, validation_split=0.2, epochs=45, verbose=2, callbacks=callbacks)
    best = keras.models.load_model(out / "best.keras")
    print(best.evaluate(x, y, verbose=0))
