import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(7)
data = rng.normal(size=(110, 64, 32)).astype("float32")
theta = {
    "w1": jnp.asarray(rng.normal(size=(32, 64)) * 0.1, jnp.float32),
    "w2": jnp.asarray(rng.normal(size=(64, 64)) * 0.1, jnp.float32),
    "w3": jnp.asarray(rng.normal(size=(64, 32)) * 0.1, jnp.float32),
}


def energy(p, batch):
    h = jnp.tanh(batch @ p["w1"])
    h = h + jnp.sin(h @ p["w2"])
    return jnp.mean((h @ p["w3"] - batch) ** 2)


for t, batch in enumerate(data):
    objective = jax.jit(jax.value_and_grad(lambda p: energy(p, batch)))
    value, grad = objective(theta)
    theta = jax.tree.map(lambda p, g: p - 0.1 * g, theta, grad)
    if t % 10 == 0:
        print(t, float(value))
