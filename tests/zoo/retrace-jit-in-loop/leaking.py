import functools

import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(7)
data = rng.normal(size=(48, 64, 32)).astype("float32")
theta = {
    "w1": jnp.asarray(rng.normal(size=(32, 64)) * 0.1, jnp.float32),
    "w2": jnp.asarray(rng.normal(size=(64, 64)) * 0.1, jnp.float32),
    "w3": jnp.asarray(rng.normal(size=(64, 32)) * 0.1, jnp.float32),
}


def energy(p, batch):
    h = jnp.tanh(batch @ p["w1"])
    h = h + jnp.sin(h @ p["w2"])
    return jnp.mean((h @ p["w3"] - batch) ** 2)


@functools.partial(jax.jit, static_argnums=0)
def descend(objective, p):
    value, grad = jax.value_and_grad(objective)(p)
    return value, jax.tree.map(lambda w, g: w - 0.1 * g, p, grad)


for t, batch in enumerate(data):
    value, theta = descend(lambda p: energy(p, batch), theta)
    if t % 3 == 0:
        print(t, float(value))
