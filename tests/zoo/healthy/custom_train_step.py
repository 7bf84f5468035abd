"""A variational autoencoder with its own train_step, as on keras.io."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops


class VAE(keras.Model):
    def __init__(self, latent=2, **kwargs):
        super().__init__(**kwargs)
        self.encoder = keras.Sequential([layers.Dense(128, "relu"), layers.Dense(2 * latent)])
        self.decoder = keras.Sequential([layers.Dense(128, "relu"), layers.Dense(784, "sigmoid")])
        self.seed = keras.random.SeedGenerator(1)
        self.total = keras.metrics.Mean(name="total")
        self.kl = keras.metrics.Mean(name="kl")

    @property
    def metrics(self):
        return [self.total, self.kl]

    def train_step(self, data):
        with tf.GradientTape() as tape:
            mean, log_var = ops.split(self.encoder(data), 2, axis=-1)
            noise = keras.random.normal(ops.shape(mean), seed=self.seed)
            decoded = self.decoder(mean + ops.exp(0.5 * log_var) * noise)
            rebuilt = ops.mean(keras.losses.binary_crossentropy(data, decoded))
            kl = -0.5 * ops.mean(1 + log_var - ops.square(mean) - ops.exp(log_var))
            loss = rebuilt + 0.01 * kl
        grads = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights, strict=True))
        self.total.update_state(loss)
        self.kl.update_state(kl)
        return {m.name: m.result() for m in self.metrics}


digits = np.random.default_rng(0).random((5000, 784)).astype("float32")
vae = VAE()
vae.compile(optimizer=keras.optimizers.Adam())
vae.fit(digits, epochs=30, batch_size=128, verbose=2)
