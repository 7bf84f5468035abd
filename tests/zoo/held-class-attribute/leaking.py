"""Fitted value iteration on a toy walk."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np


class Replay:
    """Transitions of one episode."""

    storage = []

    def add(self, states, rewards):
        self.storage.append((states, rewards))

    def sample(self, rng, size):
        states, rewards = self.storage[rng.integers(len(self.storage))]
        rows = rng.integers(len(states), size=size)
        return states[rows], rewards[rows]


class Walk:
    def __init__(self, rng):
        self.rng = rng

    def play(self, steps=8000):
        states = self.rng.normal(size=(steps, 128)).astype("float32").cumsum(axis=0) / 50
        return states, np.tanh(states.mean(axis=1, keepdims=True))


def main():
    rng = np.random.default_rng(0)
    critic = keras.Sequential(
        [
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    critic.compile(optimizer="adam", loss="mse")
    walk = Walk(rng)
    for episode in range(26):
        replay = Replay()
        replay.add(*walk.play())
        for _ in range(250):
            loss = critic.train_on_batch(*replay.sample(rng, 128))
        print(f"episode {episode}: {float(loss):.5f}")


if __name__ == "__main__":
    main()
