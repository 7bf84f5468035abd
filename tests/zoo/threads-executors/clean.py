import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np

ROWS, WIDTH = 1024, 384
scratch = threading.local()
pool = ThreadPoolExecutor(max_workers=4)


def augment(seed):
    if not hasattr(scratch, "buffer"):
        scratch.buffer = np.zeros((ROWS, WIDTH), dtype="float32")
    rng = np.random.default_rng(seed)
    scratch.buffer[:] = rng.standard_normal((ROWS, WIDTH), dtype="float32")
    return scratch.buffer[:256].copy()


@jax.jit
def step(weights, x):
    def objective(w):
        return jnp.mean(jnp.square(jnp.tanh(x @ w) @ w.T - x))

    loss, grad = jax.value_and_grad(objective)(weights)
    return weights - 0.3 * grad, loss


def epoch_batches(epoch):
    yield from pool.map(augment, range(epoch * 128, epoch * 128 + 128))


if __name__ == "__main__":
    weights = jax.random.normal(jax.random.key(0), (WIDTH, 128)) * 0.05
    for epoch in range(20):
        for batch in epoch_batches(epoch):
            weights, loss = step(weights, batch)
        print("epoch", epoch, "loss", round(float(loss), 5))
