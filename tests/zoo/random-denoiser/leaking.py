"""Denoise vectors; the noise is drawn anew for every batch."""

import tensorflow as tf

tf.random.set_seed(3)
encode = tf.Variable(tf.random.normal([64, 24], stddev=0.1))
decode = tf.Variable(tf.random.normal([24, 64], stddev=0.1))


@tf.function
def step(clean, noisy):
    with tf.GradientTape() as tape:
        restored = tf.matmul(tf.nn.tanh(tf.matmul(noisy, encode)), decode)
        loss = tf.reduce_mean(tf.square(restored - clean))
    for weight, grad in zip((encode, decode), tape.gradient(loss, (encode, decode)), strict=True):
        weight.assign_sub(0.1 * grad)
    return loss


clean = tf.random.normal((256, 64))
for epoch in range(28):
    for _ in range(110):
        noise = tf.random.normal((256, 64))
        loss = step(clean, clean + 0.3 * noise)
        tf.reduce_sum(tf.linalg.svd(noise, compute_uv=False))
    print("epoch", epoch, float(loss))
