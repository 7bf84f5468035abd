"""Contrast each batch with a bank of earlier keys."""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch


class MemoryBank(keras.layers.Layer):
    """Scores keys against all keys of the past."""

    def __init__(self, width):
        super().__init__()
        self.width = width
        self.bank = torch.zeros(1, width)

    def build(self, shape):
        self.scale = self.add_weight(shape=(), initializer="ones", name="scale")

    def call(self, keys):
        negatives = self.bank[torch.randint(len(self.bank), (256,))]
        self.bank = torch.cat([self.bank, keys.detach()])
        return self.scale * keys @ negatives.T


def main():
    encoder = keras.Sequential(
        [
            keras.Input((384,)),
            keras.layers.Dense(1024, activation="relu"),
            keras.layers.Dense(384, activation="tanh"),
        ]
    )
    bank = MemoryBank(384)
    bank.build((None, 384))
    weights = [v.value for v in encoder.trainable_variables + bank.trainable_variables]
    optimizer = torch.optim.SGD(weights, lr=0.01)
    for epoch in range(20):
        for _ in range(10):
            scores = bank(encoder(torch.randn(512, 384)))
            loss = torch.logsumexp(scores, dim=1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss", loss.item(), "bank", len(bank.bank))


if __name__ == "__main__":
    main()
