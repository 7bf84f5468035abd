"""
Title: Simple MLP
Description: Digits with two hidden layers and dropout, validated after each epoch.
"""

import keras
import numpy as np
from keras import layers

num_classes = 10
rng = np.random.default_rng(0)
x_train = rng.random((4000, 784)).astype("float32")
y_train = keras.utils.to_categorical(rng.integers(0, num_classes, 4000), num_classes)

model = keras.Sequential(
    [
        keras.Input(shape=(784,)),
        layers.Dense(256, activation="relu"),
        layers.Dropout(0.4),
        layers.Dense(256, activation="relu"),
        layers.Dropout(0.4),
        layers.Dense(num_classes, activation="softmax"),
    ]
)
model.compile(loss="categorical_crossentropy", optimizer="rmsprop", metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=128, epochs=40, validation_split=0.1, verbose=2)
print(model.evaluate(x_train, y_train, verbose=0))
