"""Bagging by hand."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np


def bootstrap(x, y, number):
    rows = np.random.default_rng(number).integers(len(x), size=len(x))
    return x[rows], y[rows]


def make_member():
    member = keras.Sequential(
        [
            keras.Input((400,)),
            keras.layers.Dense(1024, activation="relu"),
            keras.layers.Dense(512, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    member.compile("adam", "mse")
    return member


def bagging(x, y, size):
    members = []
    member = make_member()
    member.optimizer.build(member.trainable_variables)
    fresh = [np.array(v) for v in member.variables + member.optimizer.variables]
    total = np.zeros_like(y)
    for number in range(size):
        for variable, value in zip(
            member.variables + member.optimizer.variables, fresh, strict=True
        ):
            variable.assign(value)
        member.fit(*bootstrap(x, y, number), batch_size=250, epochs=5, verbose=0)
        members.append(member.count_params())
        total += member.predict(x, verbose=0, batch_size=500)
        print("member", number, "mse", float(np.mean((total / (number + 1) - y) ** 2)))
    return members


if __name__ == "__main__":
    generator = np.random.default_rng(42)
    table = generator.normal(size=(3000, 400)).astype("float32")
    bagging(table, table[:, :1] * 2, size=16)
