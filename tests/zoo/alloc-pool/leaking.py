"""Fit an encoder to fields whose resolution rises from epoch to epoch."""

import tensorflow as tf

overview = tf.random.stateless_normal((700, 1024), (3, 4))
encoder = tf.Variable(tf.random.normal((1024, 64), stddev=0.03, seed=1))


def train(field):
    with tf.GradientTape() as tape:
        code = tf.tanh(field @ encoder)
        loss = tf.reduce_mean(tf.square(code @ tf.transpose(encoder) - field))
    encoder.assign_sub(0.1 * tape.gradient(loss, encoder))
    return loss


for epoch in range(30):
    rows = 400 + 40 * epoch + 4 * epoch**2
    fields = []
    for _ in range(8):
        field = tf.random.normal((rows, 1024))
        fields.append(field)
    train(fields[0])
    del fields, field
    for _ in range(30):
        loss = train(overview)

    print("epoch", epoch, "rows", rows, "loss", float(loss))
