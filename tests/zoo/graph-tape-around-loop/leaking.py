import tensorflow as tf

w_in = tf.Variable(tf.random.normal([48, 64], stddev=0.05))
w_mid = tf.Variable(tf.random.normal([64, 64], stddev=0.05))
w_out = tf.Variable(tf.random.normal([64, 1], stddev=0.05))
params = [w_in, w_mid, w_out]

with tf.GradientTape(persistent=True) as tape:
    for epoch in range(24):
        for _ in range(170):
            batch = tf.random.normal([32, 48])
            hidden = tf.nn.relu(tf.matmul(batch, w_in))
            hidden = tf.nn.relu(tf.matmul(hidden, w_mid))
            error = tf.reduce_mean(tf.square(tf.matmul(hidden, w_out) - batch[:, :1]))
            for p, g in zip(params, tape.gradient(error, params), strict=True):
                p.assign_sub(0.01 * g)
        print("epoch", epoch, "error", error.numpy())
