import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

DIM = 1024


def pipeline(epoch):
    ds = tf.data.Dataset.range(4096)
    ds = ds.map(lambda i: tf.random.stateless_normal((DIM,), seed=(i, epoch)))
    return ds.shuffle(2048, seed=epoch).repeat().batch(64)


@jax.jit
def sgd(w, x):
    def loss(w):
        return jnp.mean((jnp.tanh(x @ w) @ w.T - x) ** 2)

    value, grad = jax.value_and_grad(loss)(w)
    return w - 0.5 * grad, value


def main():
    opened = []
    w = jnp.asarray(np.random.default_rng(0).normal(size=(DIM, 64)) * 0.05, jnp.float32)
    for epoch in range(22):
        batches = iter(pipeline(epoch))
        opened.append(batches)
        for _ in range(70):
            w, value = sgd(w, next(batches).numpy())
        print("epoch", epoch, "reconstruction", float(value))
    print(len(opened), "epochs done")


main()
