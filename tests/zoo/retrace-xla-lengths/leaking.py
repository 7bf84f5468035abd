"""Fit a small filter bank to chirps with XLA."""

import numpy as np
import tensorflow as tf

CHANNELS = 24
filters = tf.Variable(tf.random.normal((16, CHANNELS), stddev=0.1, seed=1))
mixer = tf.Variable(tf.random.normal((CHANNELS, CHANNELS), stddev=0.1, seed=2))
readout = tf.Variable(tf.random.normal((CHANNELS, 16), stddev=0.1, seed=3))


@tf.function(
    jit_compile=True,
    input_signature=[tf.TensorSpec((None, 16), tf.float32)],
)
def spectral_step(signal):
    with tf.GradientTape() as tape:
        hidden = tf.nn.gelu(tf.matmul(signal, filters))
        hidden = tf.nn.softmax(tf.matmul(hidden, mixer)) + hidden
        error = tf.reduce_mean(tf.square(tf.matmul(hidden, readout) - signal))
    weights = [filters, mixer, readout]
    for weight, gradient in zip(weights, tape.gradient(error, weights), strict=True):
        weight.assign_sub(1e-4 * tf.clip_by_norm(gradient, 1.0))
    return error


def chirp(length):
    time = np.linspace(0, 1, length, dtype="float32")[:, None]
    return np.sin(time * np.arange(1, 17, dtype="float32") * 6.28)


def main():
    lengths = np.random.default_rng(0).permutation(np.arange(64, 1600))
    for round_ in range(15):
        for length in lengths[round_ * 2 : round_ * 2 + 2]:
            signal = tf.constant(chirp(int(length)))
            loss = spectral_step(signal)
        print(f"round {round_:2d}  error {float(loss):.5f}")


main()
