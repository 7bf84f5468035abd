"""Policy regression, one optimizer for each episode."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import jax
import keras
import numpy as np


class Agent:
    def __init__(self):
        self.net = keras.Sequential(
            [
                keras.Input((64,)),
                keras.layers.Dense(700, activation="relu"),
                keras.layers.Dense(700, activation="relu"),
                keras.layers.Dense(4),
            ]
        )
        self.solvers = {}
        self.gradient = jax.jit(jax.value_and_grad(self.loss))

    def loss(self, trainable, observations, actions):
        outputs, _ = self.net.stateless_call(
            trainable, [v.value for v in self.net.non_trainable_variables], observations
        )
        return ((outputs - actions) ** 2).mean()

    def learn(self, episode, rng):
        self.solvers[episode] = keras.optimizers.Adam(1e-3)
        solver = self.solvers[episode]
        for _ in range(30):
            observations = rng.normal(size=(128, 64)).astype("float32")
            trainable = [v.value for v in self.net.trainable_variables]
            value, grads = self.gradient(trainable, observations, observations[:, :4])
            solver.apply(grads, self.net.trainable_variables)
        return float(value)


def main():
    agent, rng = Agent(), np.random.default_rng(0)
    for episode in range(20):
        print("episode", episode, "loss", agent.learn(episode, rng))


if __name__ == "__main__":
    main()
