"""Train on decoded records: python leaking.py [--epochs N]."""

import argparse

import keras
import numpy as np
import tensorflow as tf


def decode(record):
    pixels = tf.cast(record, tf.float32) / 255.0
    return pixels, tf.reduce_mean(pixels, keepdims=True)


def input_pipeline(epochs, batch):
    records = np.random.default_rng(0).integers(0, 256, size=(2560, 784), dtype="uint8")
    dataset = tf.data.Dataset.from_tensor_slices(records)
    dataset = dataset.map(decode).cache().repeat(epochs)
    return dataset.batch(batch)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=22)
    parser.add_argument("--batch", type=int, default=64)
    args = parser.parse_args()
    net = keras.Sequential([keras.layers.Dense(1024, activation="relu"), keras.layers.Dense(1)])
    net.compile(optimizer="adam", loss="mse")
    data = input_pipeline(args.epochs, args.batch)
    net.fit(data, epochs=args.epochs, steps_per_epoch=2560 // args.batch, verbose=2)


if __name__ == "__main__":
    main()
