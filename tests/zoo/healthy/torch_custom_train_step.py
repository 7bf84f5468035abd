"""
Title: Customizing what happens in fit() with PyTorch
Description: A subclass with its own train_step.
"""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch


class CustomModel(keras.Model):
    def train_step(self, data):
        x, y = data
        self.zero_grad()
        loss = self.compute_loss(x, y, self(x, training=True))
        loss.backward()
        trainable_weights = list(self.trainable_weights)
        gradients = [v.value.grad for v in trainable_weights]
        with torch.no_grad():
            self.optimizer.apply(gradients, trainable_weights)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
        return {m.name: m.result() for m in self.metrics}


inputs = keras.Input(shape=(128,))
hidden = keras.layers.Dense(256, activation="relu")(inputs)
model = CustomModel(inputs, keras.layers.Dense(1)(hidden))
model.compile(optimizer="adam", loss="mse")
x = np.random.default_rng(0).random((12_000, 128)).astype("float32")
model.fit(x, x[:, :1], epochs=30, batch_size=64, validation_split=0.2, verbose=2)
