"""Train a bag-of-words sentiment model on reviews of very different lengths."""

import argparse
import random

import keras
import numpy as np
import tensorflow as tf

LONGEST = 400


def make_reviews(count, vocabulary, seed):
    rng = random.Random(seed)
    reviews = []
    for _ in range(count):
        length = rng.randint(10, LONGEST)
        reviews.append([rng.randrange(1, vocabulary) for _ in range(length)])
    return reviews, [rng.randint(0, 1) for _ in range(count)]


def collate(rows):
    tokens = np.zeros((len(rows), LONGEST), dtype="int32")
    for i, row in enumerate(rows):
        tokens[i, : len(row)] = row
    return tokens


class Trainer:
    def __init__(self, vocabulary, width):
        self.model = keras.Sequential(
            [
                keras.layers.Embedding(vocabulary, width),
                keras.layers.Dense(width, activation="gelu"),
                keras.layers.LayerNormalization(),
                keras.layers.Dense(width, activation="gelu"),
                keras.layers.GlobalAveragePooling1D(),
                keras.layers.Dense(1),
            ]
        )
        self.loss = keras.losses.BinaryCrossentropy(from_logits=True)
        self.rate = 0.05

    @tf.function
    def step(self, tokens, labels):
        with tf.GradientTape() as tape:
            value = self.loss(labels, self.model(tokens, training=True))
        variables = self.model.trainable_variables
        for variable, gradient in zip(variables, tape.gradient(value, variables), strict=True):
            variable.assign_sub(self.rate * tf.convert_to_tensor(gradient))
        return value

    def run(self, reviews, labels, batch):
        total = 0.0
        for start in range(0, len(reviews), batch):
            tokens = tf.constant(collate(reviews[start : start + batch]))
            targets = tf.constant(labels[start : start + batch], shape=(batch, 1))
            total += self.train_on(tokens, targets)
        return total

    def train_on(self, tokens, labels):
        loss = self.step(tokens, labels)
        return float(loss)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=14)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=500)
    args = parser.parse_args()
    trainer = Trainer(args.vocabulary, 48)
    for epoch in range(args.epochs):
        reviews, labels = make_reviews(900, args.vocabulary, seed=epoch)
        print(epoch, trainer.run(reviews, labels, args.batch))


if __name__ == "__main__":
    main()
