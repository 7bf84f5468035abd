"""Worker processes make noisy patches, JAX denoises them."""

import multiprocessing

import fresh_patches as patches


def main(epochs=20, batches=12):
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(weights, noisy, clean):
        def loss(w):
            return jnp.mean((noisy @ w - clean) ** 2)

        value, grad = jax.value_and_grad(loss)(weights)
        return weights - 0.1 * grad, value

    weights = jnp.eye(512)
    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        for epoch in range(epochs):
            seeds = range(epoch * batches, (epoch + 1) * batches)
            for noisy, clean in pool.imap(patches.make, seeds):
                for _ in range(14):
                    weights, value = step(weights, noisy, clean)
            print("epoch", epoch, "loss", float(value))


if __name__ == "__main__":
    main()
