"""Train with a decaying rate and look at the logits afterwards."""

import keras
import tensorflow as tf


class Run:
    def __init__(self):
        self.net = keras.Sequential(
            [keras.Input((96,))]
            + [keras.layers.Dense(448, activation="relu") for _ in range(3)]
            + [keras.layers.Dense(1000)]
        )
        self.logits = []

    @tf.function
    def step(self, x, epoch):
        with tf.GradientTape() as tape:
            logits = self.net(x, training=True)
            loss = tf.reduce_mean(tf.square(logits - x[:, :1]))
        weights = self.net.trainable_weights
        for weight, grad in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.1 / (1 + epoch) * grad)
        return loss, logits

    def train(self, epochs):
        for epoch in range(epochs):
            for _ in range(9):
                x = tf.random.normal((512, 96))
                loss, logits = self.step(x, tf.constant(epoch, tf.float32))
                self.logits.append(float(tf.reduce_mean(logits)))
            print(epoch, float(loss))


if __name__ == "__main__":
    Run().train(28)
