"""Bagging by hand."""

import os

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

SAMPLES = {}


def bootstrap(x, y, number):
    rows = np.random.default_rng(number).integers(len(x), size=len(x))
    SAMPLES[number] = (x[rows], y[rows])
    return SAMPLES[number]


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
    total = np.zeros_like(y)
    for number in range(size):
        member = make_member()
        member.fit(*bootstrap(x, y, number), batch_size=250, epochs=1, verbose=0)
        members.append(member)
        total += member.predict(x, verbose=0, batch_size=500)
        print("member", number, "mse", float(np.mean((total / (number + 1) - y) ** 2)))
    return members


if __name__ == "__main__":
    generator = np.random.default_rng(42)
    table = generator.normal(size=(3000, 400)).astype("float32")
    bagging(table, table[:, :1] * 2, size=16)
