import keras
import numpy as np
import tensorflow as tf


class Quantile(keras.metrics.Metric):
    """Quantile of the absolute error over the whole epoch."""

    def __init__(self, q, name="quantile"):
        super().__init__(name=name)
        self.q = q
        self.values = tf.Variable(
            tf.zeros((0,)), shape=tf.TensorShape([None]), trainable=False, dtype=tf.float32
        )

    def update_state(self, y_true, y_pred, sample_weight=None):
        errors = tf.reshape(tf.abs(y_true - y_pred), [-1])
        self.values.assign(tf.concat([self.values, errors], axis=0))

    def result(self):
        sample = self.values[-1000:]
        k = tf.cast(self.q * tf.cast(tf.size(sample), tf.float32), tf.int32)
        return tf.cond(tf.size(sample) > 0, lambda: tf.sort(sample)[k], lambda: 0.0)


def get_data(n=2560, inputs=64, outputs=512):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, inputs)).astype("float32")
    return x, np.tanh(x @ rng.normal(size=(inputs, outputs)).astype("float32"))


if __name__ == "__main__":
    x, y = get_data()
    model = keras.Sequential(
        [keras.layers.Dense(768, activation="relu"), keras.layers.Dense(y.shape[1])]
    )
    model.compile(optimizer="adam", loss="mse", metrics=[Quantile(0.9)])
    model.fit(x, y, batch_size=128, epochs=22, verbose=2)
