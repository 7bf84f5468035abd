"""Two losses, two gradients, and the angle between them."""

import keras
import tensorflow as tf


def angle(a, b):
    a = tf.concat([tf.reshape(g, [-1]) for g in a], 0)
    b = tf.concat([tf.reshape(g, [-1]) for g in b], 0)
    return tf.reduce_sum(a * b) / (tf.norm(a) * tf.norm(b))


def train(model, steps):
    tapes = 0
    for step in range(steps):
        x = tf.random.normal((24, 128))
        with tf.GradientTape(persistent=True) as tape:
            out = model(x, training=True)
            fit = tf.reduce_mean(tf.square(out - x))
            sparse = tf.reduce_mean(tf.abs(out))
        weights = model.trainable_weights
        first, second = tape.gradient(fit, weights), tape.gradient(sparse, weights)
        tapes += 1
        for weight, g1, g2 in zip(weights, first, second, strict=True):
            weight.assign_sub(0.01 * (g1 + 0.1 * g2))
        if step % 100 == 0:
            print(step, float(fit), float(angle(first, second)))
    return tapes


if __name__ == "__main__":
    layers = [keras.layers.Dense(128, activation="relu") for _ in range(3)]
    train(keras.Sequential([*layers, keras.layers.Dense(128)]), steps=1700)
