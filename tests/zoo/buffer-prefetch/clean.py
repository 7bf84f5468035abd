"""Video features: large batches, small model."""

import keras
import tensorflow as tf


class Frames:
    def __init__(self, batch=128, width=2048):
        self.batch = batch
        self.width = width

    def frame(self, index):
        return tf.random.stateless_uniform((self.width,), seed=(index, 1))

    def dataset(self):
        frames = tf.data.Dataset.range(10**6).map(self.frame)
        frames = frames.map(lambda frame: (frame, tf.reduce_max(frame, keepdims=True)))
        return frames.batch(self.batch).prefetch(2)


if __name__ == "__main__":
    net = keras.Sequential(
        [
            keras.layers.Dense(1024, activation="relu"),
            keras.layers.Dense(1024, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    net.compile("adam", "mae")
    net.fit(Frames().dataset(), epochs=20, steps_per_epoch=8, verbose=2)
