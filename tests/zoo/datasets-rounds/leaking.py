"""Active learning: ask the oracle for a new pool in each round."""

import keras
import numpy as np
import tensorflow as tf


def oracle(pool):
    return (pool[:, :16].sum(axis=1) > 0).astype("float32")[:, None]


def draw_pool(rng):
    return rng.normal(size=(4096, 600)).astype("float32")


def main():
    rng = np.random.default_rng(3)
    classifier = keras.Sequential(
        [
            keras.Input((600,)),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    classifier.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    rounds = []
    for number in range(18):
        pool = draw_pool(rng)
        labelled = tf.data.Dataset.from_tensor_slices((pool, oracle(pool))).batch(128)
        rounds.append(labelled)
        classifier.fit(labelled, epochs=6, verbose=0)
        print(number, classifier.evaluate(labelled, verbose=0))
    print(f"{len(rounds)} rounds asked")


if __name__ == "__main__":
    main()
