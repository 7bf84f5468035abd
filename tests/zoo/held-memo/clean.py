"""Train on augmented images."""

import keras
import numpy as np
import plain_features as features
from settings import BATCH, EPOCHS, IMAGES, SIDE


def batches(images, targets, epoch):
    for start in range(0, len(images), BATCH):
        rows = range(start, start + BATCH)
        yield np.stack([features.augmented(images, row, epoch) for row in rows]), targets[rows]


def main():
    rng = np.random.default_rng(0)
    images = rng.random((IMAGES, SIDE, SIDE)).astype("float32")
    targets = images.mean(axis=(1, 2))[:, None]
    model = keras.Sequential(
        [keras.layers.Flatten(), keras.layers.Dense(1024, activation="relu"), keras.layers.Dense(1)]
    )
    model.compile("adam", "mse")
    for epoch in range(EPOCHS):
        for x, y in batches(images, targets, epoch):
            loss = model.train_on_batch(x, y)
        print("epoch", epoch, "loss", float(loss))


if __name__ == "__main__":
    main()
