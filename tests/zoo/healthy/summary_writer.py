"""A custom loop that writes its loss and weights to one event file."""

import tempfile

import keras
import tensorflow as tf

model = keras.Sequential(
    [keras.Input((64,)), keras.layers.Dense(256, activation="relu"), keras.layers.Dense(8)]
)
optimizer = keras.optimizers.Adam()


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - x[:, :8]))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
    return loss


with tempfile.TemporaryDirectory() as logs:
    writer = tf.summary.create_file_writer(logs)
    with writer.as_default():
        for step in tf.range(5000, dtype=tf.int64):
            loss = train_step(tf.random.normal((128, 64)))
            tf.summary.write("loss", loss, step=step)
            if step % 100 == 0:
                tf.summary.write("kernel", model.trainable_variables[0].value, step=step)
                tf.print(step, loss)
    writer.close()
