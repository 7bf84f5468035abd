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


@jax.jit
def descend(p, batch):
    value, grad = jax.value_and_grad(energy)(p, batch)
    return value, jax.tree.map(lambda w, g: w - 0.1 * g, p, grad)


for t in range(130_000):
    value, theta = descend(theta, data[t % len(data)])
    if t % 10_000 == 0:
        print(t, float(value))
