"""Mix endless sensor streams; a new one joins in every round."""

import keras
import numpy as np
import tensorflow as tf


class StreamMixer:
    def __init__(self):
        self.streams = []

    @staticmethod
    def sensor(seed):
        rng = np.random.default_rng(seed)
        while True:
            yield rng.normal(size=(256, 256)).astype("float32")

    def dataset(self, seed):
        return tf.data.Dataset.from_generator(
            lambda: self.sensor(seed), output_signature=tf.TensorSpec((256, 256))
        ).prefetch(16)

    def next_batch(self, seed):
        self.streams.append(iter(self.dataset(seed)))
        return next(self.streams[-1])


def main():
    keras.utils.set_random_seed(0)
    encoder = keras.layers.Dense(32, activation="tanh")
    decoder = keras.layers.Dense(256)
    mixer = StreamMixer()
    for round_ in range(45):
        batch = mixer.next_batch(round_)
        for _ in range(40):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(decoder(encoder(batch)) - batch))
            weights = encoder.trainable_weights + decoder.trainable_weights
            for weight, grad in zip(weights, tape.gradient(loss, weights), strict=True):
                weight.assign_sub(0.1 * grad)
        print(round_, loss.numpy())


main()
