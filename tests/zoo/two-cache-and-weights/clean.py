"""Long rows, small network, all weights kept for a plot."""

import keras
import tensorflow as tf

checkpoints = []


def rows(count=2048, width=1024):
    rows = tf.data.Dataset.range(count)
    rows = rows.map(lambda i: tf.random.stateless_normal((width,), (i, i)))
    rows = rows.map(lambda row: (row, row[:1]))
    return rows.cache().repeat().batch(64)


net = keras.Sequential(
    [
        keras.layers.Dense(700, activation="relu"),
        keras.layers.Dense(700, activation="relu"),
        keras.layers.Dense(1),
    ]
)
net.compile(optimizer="sgd", loss="mse")
keep = keras.callbacks.LambdaCallback(
    on_epoch_end=lambda epoch, logs: checkpoints.append(float(net.get_weights()[0].std()))
)
net.fit(rows(), epochs=30, steps_per_epoch=32, verbose=2, callbacks=[keep])
