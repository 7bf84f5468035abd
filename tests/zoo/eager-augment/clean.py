"""Augment thumbnails one by one, then train."""

import random

import keras
import tensorflow as tf

rng = random.Random(1)


def thumbnails(count):
    return [tf.random.uniform((12, 12)) for _ in range(count)]


def augmented(images, size):
    for start in range(0, len(images), size):
        batch = images[start : start + size]
        scales = tf.unstack(tf.constant([rng.uniform(0.8, 1.2) for _ in batch]))
        shifts = tf.unstack(tf.constant([rng.uniform(-0.1, 0.1) for _ in batch]))
        rows = zip(batch, scales, shifts, strict=True)
        yield tf.stack([image * scale + shift for image, scale, shift in rows])


def main():
    images = thumbnails(6000)
    model = keras.Sequential(
        [keras.layers.Flatten(), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)]
    )
    model.compile("sgd", "mse")
    for epoch in range(24):
        for x in augmented(images, 1000):
            loss = model.train_on_batch(x, tf.reduce_mean(x, axis=(1, 2))[:, None])
        print("epoch", epoch, "loss", float(loss))


if __name__ == "__main__":
    main()
