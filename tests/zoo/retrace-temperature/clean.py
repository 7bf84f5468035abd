"""Distil a random teacher with an annealed temperature, in pure JAX."""

import math

import jax
import jax.numpy as jnp

SIZES = (128, 96, 96, 10)


def init(key):
    params = []
    for fan_in, fan_out in zip(SIZES[:-1], SIZES[1:], strict=True):
        key, sub = jax.random.split(key)
        weight = jax.random.normal(sub, (fan_in, fan_out)) / math.sqrt(fan_in)
        params.append((weight, jnp.zeros(fan_out)))
    return params


def forward(params, x):
    for weight, bias in params[:-1]:
        x = jax.nn.gelu(x @ weight + bias)
    weight, bias = params[-1]
    return x @ weight + bias


def soft_loss(params, x, y, temperature):
    logits = forward(params, x) / temperature
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * y, axis=-1))


@jax.jit
def update(params, x, y, temperature):
    loss, grads = jax.value_and_grad(soft_loss)(params, x, y, temperature)
    return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), loss


def main(steps=14000):
    key = jax.random.PRNGKey(0)
    params = init(key)
    images = jax.random.normal(key, (256, 128))
    labels = jax.nn.softmax(jax.random.normal(key, (256, 10)))
    for step in range(steps):
        temperature = 1.0 + 4.0 * math.exp(-step / 50)
        params, loss = update(params, images, labels, temperature=temperature)
        if step % 200 == 0:
            print(f"{step:4d} T={temperature:.3f} loss={loss:.4f}")


if __name__ == "__main__":
    main()
