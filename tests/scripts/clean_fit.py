"""A healthy training: validation, checkpoints, early stopping, many epochs."""

import sys
import tempfile

import keras
import numpy as np

epochs = int(sys.argv[1])
rng = np.random.default_rng(0)
x = rng.random((6400, 64), dtype="float32")
y = rng.integers(0, 10, 6400)
model = keras.Sequential(
    [
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dropout(0.1),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(10),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
with tempfile.TemporaryDirectory() as folder:
    callbacks = [
        keras.callbacks.ModelCheckpoint(f"{folder}/model.weights.h5", save_weights_only=True),
        keras.callbacks.EarlyStopping(patience=epochs, restore_best_weights=True),
    ]
    model.fit(
        x, y, batch_size=32, epochs=epochs, verbose=0, validation_split=0.1, callbacks=callbacks
    )
