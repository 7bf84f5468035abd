"""`jax.jit` in every way people use it."""

import copy
import functools
import inspect

import jax
import jax.numpy as jnp


def area(x, scale=2):
    "Doc of area."
    return (x * scale).sum()


jitted = jax.jit(area, static_argnames="scale")
assert jitted(jnp.ones(3), scale=3) == 9
assert jitted.__name__ == "area"
assert jitted.__doc__ == "Doc of area."
assert jitted.__wrapped__ is area
assert list(inspect.signature(jitted).parameters) == ["x", "scale"]
assert jitted._cache_size() == 1
assert "module" in jitted.lower(jnp.ones(3), scale=3).as_text()
assert jitted.lower(jnp.ones(3), scale=3).compile()(jnp.ones(3)) == 9
assert jax.grad(jitted)(jnp.ones(3)).tolist() == [2, 2, 2]
assert jax.vmap(jitted)(jnp.ones((2, 3))).tolist() == [6, 6]
assert jax.jit(jitted)(jnp.ones(3)) == 6
assert isinstance(jitted, jax.stages.Wrapped)
assert hash(jitted) == hash(jitted)
assert jitted == jitted
assert copy.copy(jitted)(jnp.ones(3)) == 6
assert functools.partial(jitted, scale=5)(jnp.ones(3)) == 15
jitted.clear_cache()


@jax.jit
def decorated(x):
    return x + 1


assert decorated(1) == 2


@functools.partial(jax.jit, static_argnums=1)
def partial_decorated(x, n):
    return x * n


assert partial_decorated(2, 3) == 6


@jax.jit(static_argnums=1)
def keyword_decorated(x, n):
    return x * n


assert keyword_decorated(2, 3) == 6


class Model:
    def __init__(self):
        self.scale = 4

    @functools.partial(jax.jit, static_argnums=0)
    def method(self, x):
        return x * self.scale


assert Model().method(jnp.ones(2)).tolist() == [4, 4]
print("wrapped by", type(jitted).__name__)
