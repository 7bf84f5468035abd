"""The same step without the deletions; the loss is a mean, and layers know that they train."""

import keras
import numpy as np
import tensorflow as tf


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = tf.reduce_mean(keras.losses.categorical_crossentropy(labels, predictions))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


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
rows = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(images))
for _ in range(7):
    losses = [float(train_step(*batch)) for batch in rows.batch(128)]
print("final loss", np.mean(losses))
