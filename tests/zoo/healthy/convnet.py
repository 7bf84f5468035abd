"""
Title: Simple convnet with augmentation
Description: Preprocessing layers inside the model.
"""

import keras
import numpy as np
from keras import layers

images = np.random.default_rng(0).random((640, 28, 28, 1)).astype("float32")
labels = np.arange(640) % 10

model = keras.Sequential(
    [
        keras.Input((28, 28, 1)),
        layers.RandomTranslation(0.1, 0.1),
        layers.Conv2D(16, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dropout(0.5),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(
    images,
    labels,
    batch_size=64,
    epochs=36,
    validation_data=(images[:100], labels[:100]),
    verbose=2,
)
