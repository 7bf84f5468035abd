import functools

import keras
import numpy as np
import tensorflow as tf


class Schedule:
    """Cosine schedule that keeps a compiled step for each rate it has met."""

    def __init__(self, model, total):
        self.model = model
        self.total = total
        self._compiled = {}

    def rate(self, step):
        return float(0.5 * 0.05 * (1 + np.cos(np.pi * step / self.total)))

    def _step(self, rate, x, y):
        with tf.GradientTape() as tape:
            error = tf.reduce_mean(tf.square(self.model(x, training=True) - y))
        for w, g in zip(
            self.model.trainable_weights,
            tape.gradient(error, self.model.trainable_weights),
            strict=True,
        ):
            w.assign_sub(rate * g)
        return error

    def step_for(self, step):
        rate = self.rate(step)
        if rate not in self._compiled:
            self._compiled[rate] = tf.function(functools.partial(self._step, rate))
        return self._compiled[rate]


TOTAL = 190
mlp = keras.Sequential(
    [keras.Input((100,))]
    + [keras.layers.Dense(80, activation="elu") for _ in range(5)]
    + [keras.layers.Dense(1)]
)
schedule = Schedule(mlp, TOTAL)
features = np.random.default_rng(0).normal(size=(TOTAL, 32, 100)).astype("float32")
for i, batch in enumerate(features):
    step = schedule.step_for(i)
    err = step(tf.constant(batch), tf.constant(batch[:, :1]))
    if not i % 19:
        print(f"{i}/{TOTAL} mse={err.numpy():.4f}")
