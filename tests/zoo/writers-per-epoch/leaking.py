"""Log activations of an autoencoder, one run folder for each epoch."""

import tempfile

import keras
import tensorflow as tf

LOGS = tempfile.mkdtemp(prefix="runs-")
writers = {}
encoder = keras.Sequential([keras.Input((256,)), keras.layers.Dense(512, activation="relu")])
decoder = keras.Sequential([keras.Input((512,)), keras.layers.Dense(256)])
optimizer = keras.optimizers.Adam(1e-3)
variables = encoder.trainable_variables + decoder.trainable_variables


@tf.function
def train(x):
    with tf.GradientTape() as tape:
        activations = encoder(x)
        loss = tf.reduce_mean(tf.square(decoder(activations) - x))
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return loss, activations


def run_epoch(epoch):
    writers[epoch] = tf.summary.create_file_writer(
        f"{LOGS}/epoch-{epoch}", max_queue=100_000, flush_millis=600_000
    )
    writers[epoch].set_as_default()
    for step in range(80):
        loss, activations = train(tf.random.normal((256, 256)))
        if step % 5 == 0:
            tf.summary.write("activations", activations, step=step)
    return loss


for epoch in range(20):
    print(epoch, run_epoch(epoch).numpy())
