"""Keras on torch, fed by a torch DataLoader."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import tempfile

import keras
import torch

torch.manual_seed(0)
features = torch.randn(4000, 200)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(features, features[:, :2].abs()), batch_size=100, shuffle=True
)
model = keras.Sequential(
    [
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dropout(0.1),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(2),
    ]
)
model.compile(optimizer="adam", loss="mse", metrics=["mae"])
with tempfile.TemporaryDirectory() as folder:
    callbacks = [
        keras.callbacks.LearningRateScheduler(lambda epoch, lr: lr * 0.95),
        keras.callbacks.ModelCheckpoint(
            os.path.join(folder, "last.weights.h5"), save_weights_only=True
        ),
    ]
    model.fit(loader, epochs=45, verbose=2, callbacks=callbacks)
