"""Progressive training: the loss is re-weighted in stages."""

import keras
import tensorflow as tf


def build_network():
    tensor = entry = keras.Input((128,))
    for _ in range(8):
        tensor = keras.layers.Dense(64, activation="relu")(tensor)
        tensor = keras.layers.LayerNormalization()(tensor)
    return keras.Model(entry, keras.layers.Dense(4)(tensor))


def make_train_step(network, optimizer):
    objective = keras.losses.MeanSquaredError()

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = objective(y, network(x, training=True))
        grads = tape.gradient(loss, network.trainable_variables)
        optimizer.apply_gradients(zip(grads, network.trainable_variables, strict=True))
        return loss

    return train_step


def main():
    network = build_network()
    sgd = keras.optimizers.Adam(1e-3)
    train_step = make_train_step(network, sgd)
    for stage in range(18):
        for _ in range(300):
            x = tf.random.normal((64, 128))
            loss = train_step(x, x[:, :4])
        tf.print("stage", stage, "loss", loss)


main()
