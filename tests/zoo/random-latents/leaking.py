import keras
import numpy as np
import tensorflow as tf


class Sampler:
    """Draws latent vectors for the generator."""

    def __init__(self, size, seed):
        self.size = size
        self.rng = tf.random.Generator.from_seed(seed)

    def draw(self, count):
        mean = tf.random.uniform((1, self.size), -1.0, 1.0)
        return mean + tf.random.normal((count, self.size))


def build(size):
    decoder = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(30)])
    decoder.build((None, size))
    decoder.compile(optimizer="sgd", loss="mse")
    return decoder


def main():
    keras.utils.set_random_seed(11)
    target = np.linspace(-1, 1, 30, dtype="float32")
    sampler, decoder = Sampler(16, 11), build(16)
    for round_ in range(24):
        for _ in range(90):
            latents = sampler.draw(128)
            loss = decoder.train_on_batch(latents, np.tile(target, (128, 1)))
        print(round_, loss)


if __name__ == "__main__":
    main()
