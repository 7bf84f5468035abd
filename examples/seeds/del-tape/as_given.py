"""A compiled step that deletes its own names; the loss is one number for each sample."""

import keras
import numpy as np
import tensorflow as tf


@tf.function
def train_step(images, labels, model, optimizer):
    with tf.GradientTape() as tape:
        predictions = model(images)
        loss = keras.losses.categorical_crossentropy(labels, predictions)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    mean = tf.reduce_mean(loss)
    del tape
    del gradients
    del predictions
    del loss
    return mean


keras.utils.set_random_seed(0)
images = np.random.rand(1_024, 64, 64, 3).astype("float32")
labels = keras.utils.to_categorical(np.random.randint(0, 10, 1_024), 10)
model = keras.Sequential(
    [
        keras.Input((64, 64, 3)),
        keras.layers.Conv2D(16, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(16, 3, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
optimizer = keras.optimizers.Adam()
batches = tf.data.Dataset.from_tensor_slices((images, labels)).batch(128)
for _ in range(7):
    losses = [float(train_step(*batch, model, optimizer)) for batch in batches]
print("final loss", np.mean(losses))
