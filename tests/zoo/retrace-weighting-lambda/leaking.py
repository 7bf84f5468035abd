"""Self-paced learning: easy examples first (toy reproduction)."""

import keras
import tensorflow as tf

net = keras.Sequential(
    [
        keras.Input((256,)),
        keras.layers.Dense(96, activation="tanh"),
        keras.layers.Dense(96, activation="tanh"),
        keras.layers.Dense(96, activation="tanh"),
        keras.layers.Dense(10),
    ]
)
criterion = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)
STEPS = 190


@tf.function
def update(images, labels, weighting):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(weighting(criterion(labels, net(images, training=True))))
    for var, grad in zip(
        net.trainable_variables, tape.gradient(loss, net.trainable_variables), strict=True
    ):
        var.assign_sub(0.05 * grad)
    return loss


def pace(step):
    return min(1.0, 0.2 + step / STEPS)


def train():
    for step in range(STEPS):
        images = tf.random.normal((64, 256))
        labels = tf.random.uniform((64,), maxval=10, dtype=tf.int32)
        weight = pace(step)
        value = update(images, labels, lambda loss, w=weight: loss * w)
        if step % 10 == 0:
            print(step, float(value))


if __name__ == "__main__":
    train()
