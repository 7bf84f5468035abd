"""Evolve the parameters of a small controller."""

import random
import time

import tensorflow as tf

random.seed(0)


def fitness(genes):
    return -tf.reduce_sum(tf.square(tf.stack(genes) - 0.5))


def evolve(seconds):
    genes = [tf.constant(random.random()) for _ in range(60)]
    best = fitness(genes)
    deadline = time.monotonic() + seconds
    generation = 0
    while time.monotonic() < deadline:
        factors = tf.unstack(tf.constant([random.gauss(1.0, 0.05) for _ in genes]))
        children = [gene * factor for gene, factor in zip(genes, factors, strict=True)]
        score = fitness(children)
        if score > best:
            genes, best = children, score
        generation += 1
        if generation % 500 == 0:
            print(f"generation {generation}: fitness {float(best):.4f}")


evolve(16)
