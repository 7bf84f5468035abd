"""Mix endless sensor streams; a new one joins in every round."""

import keras
import tensorflow as tf


class StreamMixer:
    def __init__(self):
        self.rounds = 13

    def dataset(self, seed):
        frame = tf.random.stateless_normal((512, 256), (seed, 1))
        return tf.data.Dataset.from_tensors(frame).repeat().map(tf.sin).prefetch(16)

    def next_batch(self, seed):
        return next(iter(self.dataset(seed)))


def main():
    keras.utils.set_random_seed(0)
    encoder = keras.layers.Dense(32, activation="tanh")
    decoder = keras.layers.Dense(256)
    mixer = StreamMixer()
    for round_ in range(mixer.rounds):
        batch = mixer.next_batch(round_)
        for _ in range(260):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(decoder(encoder(batch)) - batch))
            weights = encoder.trainable_weights + decoder.trainable_weights
            for weight, grad in zip(weights, tape.gradient(loss, weights), strict=True):
                weight.assign_sub(0.1 * grad)
        print(round_, loss.numpy())


main()
