"""Encode fields of growing resolution; only a short code of each is kept."""

import tensorflow as tf

encoder = tf.Variable(tf.random.normal((1024, 64), stddev=0.03, seed=1))
codes = []


def train(field):
    with tf.GradientTape() as tape:
        code = tf.tanh(field @ encoder)
        loss = tf.reduce_mean(tf.square(code @ tf.transpose(encoder) - field))
    encoder.assign_sub(0.1 * tape.gradient(loss, encoder))
    return loss


for epoch in range(20):
    rows = 2000
    fields = []
    for _ in range(8):
        field = tf.random.normal((rows, 1024))
        code = tf.random.normal((300, 256))
        fields.append(field)
        codes.append(code[0, 0].numpy())
    for field in fields:
        loss = train(field)
    del fields, field

    print("epoch", epoch, "rows", rows, "loss", float(loss))
