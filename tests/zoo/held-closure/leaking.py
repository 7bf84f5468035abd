"""Weight-space trajectories of a small network."""

import jax
import jax.numpy as jnp


def make_saver():
    snapshots = []

    def save(params):
        snapshots.append(params)
        return len(snapshots)

    return save


def initial(key, width=1200):
    first, second = jax.random.split(key)
    return {
        "in": jax.random.normal(first, (96, width)) * 0.1,
        "hidden": jax.random.normal(second, (width, width)) * 0.02,
        "out": jnp.zeros((width, 1)),
    }


@jax.jit
def train(params, x, y):
    def loss(p):
        h = jax.nn.relu(x @ p["in"])
        h = jax.nn.relu(h @ p["hidden"])
        return jnp.mean((h @ p["out"] - y) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), value


def main():
    key = jax.random.key(0)
    params = initial(key)
    save = make_saver()
    for epoch in range(20):
        for _ in range(50):
            key, sub = jax.random.split(key)
            x = jax.random.normal(sub, (128, 96))
            params, value = train(params, x, x[:, :1])
        count = save(params)
        print(count, float(value))


main()
