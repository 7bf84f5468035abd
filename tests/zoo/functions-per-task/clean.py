"""Sinusoid meta-learning: a jitted learner for each task."""

import jax
import jax.numpy as jnp
import numpy as np


def net(p, x):
    h = jnp.tanh(x @ p["a"])
    h = jnp.tanh(h @ p["b"])
    return h @ p["c"]


def adapt(p, x, *, amplitude, phase):
    target = amplitude * jnp.sin(x + phase)

    def loss(q):
        return jnp.mean((net(q, x) - target) ** 2)

    grads = jax.grad(loss)(p)
    p = {k: p[k] - 0.01 * grads[k] for k in p}
    return loss(p), p


def main(tasks=45_000):
    rng = np.random.default_rng(11)
    p = {
        "a": jnp.asarray(rng.normal(size=(1, 40)), jnp.float32),
        "b": jnp.asarray(rng.normal(size=(40, 40)) / 6, jnp.float32),
        "c": jnp.asarray(rng.normal(size=(40, 1)) / 6, jnp.float32),
    }
    learner = jax.jit(adapt)
    for task in range(tasks):
        amplitude, phase = rng.uniform(0.1, 5), rng.uniform(0, 3.14)
        x = rng.uniform(-5, 5, size=(32, 1)).astype("float32")
        value, fast = learner(p, x, amplitude=amplitude, phase=phase)
        p = jax.tree.map(lambda slow, quick: slow + 0.1 * (quick - slow), p, fast)
        if task % 5000 == 0:
            print("task", task, "loss", float(value))


main()
