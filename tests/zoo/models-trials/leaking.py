"""A tiny random search over widths and learning rates."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import gc
import random
from dataclasses import dataclass, field

import keras
import numpy as np


@dataclass
class RandomSearch:
    budget: int = 15
    trials: list = field(default_factory=list)

    def sample(self):
        return {
            "width": random.choice([896, 960, 1024]),
            "rate": 10 ** random.uniform(-4, -2),
        }

    def run(self, data):
        for number in range(self.budget):
            config = self.sample()
            score, model = self.evaluate(config, *data)
            self.trials.append({"score": score, "config": config, "model": model})
            print(f"trial {number}: {score:.4f} {config}")
            del model
            gc.collect()
        return min(self.trials, key=lambda trial: trial["score"])

    def evaluate(self, config, features, targets):
        model = keras.Sequential(
            [
                keras.layers.Dense(config["width"], activation="swish"),
                keras.layers.Dense(config["width"], activation="swish"),
                keras.layers.Dense(1),
            ]
        )
        model.compile(keras.optimizers.Adam(config["rate"]), loss="mse")
        log = model.fit(features, targets, epochs=2, batch_size=128, verbose=0)
        return log.history["loss"][-1], model


if __name__ == "__main__":
    random.seed(5)
    noise = np.random.default_rng(5)
    table = noise.normal(size=(768, 64)).astype("float32")
    winner = RandomSearch().run((table, table.mean(axis=1, keepdims=True)))
    print("winner", winner["config"])
