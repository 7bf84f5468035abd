"""Plan with a tree of imagined states, learn from the best leaf."""

import weakref

import jax
import jax.numpy as jnp
import numpy as np


class Node:
    def __init__(self, state, parent=None):
        self.state = state
        self.parent = weakref.ref(parent) if parent else None
        self.children = []

    def expand(self, state):
        self.children.append(Node(state, parent=self))
        return self.children[-1]


@jax.jit
def imagine(params, state):
    return jnp.tanh(state @ params)


@jax.jit
def improve(params, state, goal):
    grad = jax.grad(lambda p: jnp.mean((jnp.tanh(state @ p) - goal) ** 2))(params)
    return params - 0.1 * grad


def grow(params, rng, depth=4):
    root = node = Node(rng.normal(size=(256, 256)).astype("float32"))
    for _ in range(depth):
        for _ in range(3):
            child = node.expand(np.array(imagine(params, node.state + rng.normal())))
        node = child
    return root


def main():
    rng = np.random.default_rng(0)
    params = jnp.asarray(rng.normal(size=(256, 256)) / 16, jnp.float32)
    goal = np.full((256, 256), 0.5, "float32")
    for search in range(75):
        root = grow(params, rng)
        for child in root.children:
            for _ in range(88):
                params = improve(params, child.state, goal)
        if search % 5 == 0:
            print("search", search, "norm", float(jnp.linalg.norm(params)))


main()
