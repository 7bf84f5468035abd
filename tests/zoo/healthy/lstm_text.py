"""
Title: Bidirectional LSTM
Description: Sentiment of padded reviews.
"""

import keras
import numpy as np
from keras import layers

max_features, maxlen = 2000, 40
rng = np.random.default_rng(0)
x_train = rng.integers(1, max_features, size=(640, maxlen))
y_train = (x_train[:, 0] > 1000).astype("float32")

inputs = keras.Input(shape=(None,), dtype="int32")
x = layers.Embedding(max_features, 32)(inputs)
x = layers.Bidirectional(layers.LSTM(24))(x)
model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=32, epochs=20, validation_split=0.2, verbose=2)
