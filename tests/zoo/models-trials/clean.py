"""A tiny random search over learning rates."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import random
from dataclasses import dataclass, field

import keras
import numpy as np


def make_model(inputs, width=960):
    model = keras.Sequential(
        [
            keras.Input((inputs,)),
            keras.layers.Dense(width, activation="swish"),
            keras.layers.Dense(width, activation="swish"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.Adam(), loss="mse")
    model.optimizer.build(model.trainable_variables)
    return model


@dataclass
class RandomSearch:
    budget: int = 15
    trials: list = field(default_factory=list)

    def run(self, data):
        self.model = make_model(data[0].shape[1])
        self.variables = self.model.variables + self.model.optimizer.variables
        self.start = [np.array(variable) for variable in self.variables]
        for number in range(self.budget):
            config = {"rate": 10 ** random.uniform(-4, -2)}
            score = self.evaluate(config, *data)
            self.trials.append({"score": score, "config": config})
            print(f"trial {number}: {score:.4f} {config}")
        return min(self.trials, key=lambda trial: trial["score"])

    def evaluate(self, config, features, targets):
        for variable, value in zip(self.variables, self.start, strict=True):
            variable.assign(value)
        self.model.optimizer.learning_rate = config["rate"]
        log = self.model.fit(features, targets, epochs=16, batch_size=128, verbose=0)
        return log.history["loss"][-1]


if __name__ == "__main__":
    random.seed(5)
    noise = np.random.default_rng(5)
    table = noise.normal(size=(768, 64)).astype("float32")
    winner = RandomSearch().run((table, table.mean(axis=1, keepdims=True)))
    print("winner", winner["config"])
