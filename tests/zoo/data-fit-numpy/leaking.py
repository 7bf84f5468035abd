import keras
import numpy as np
from prepare import TRAIN, labels

X = np.load(TRAIN).astype("float32") / 255.0
y = labels(len(X))
print("train", X.shape, "%.0f MB" % (X.nbytes / 1e6))

model = keras.Sequential(
    [
        keras.layers.Input((1024,)),
        keras.layers.Dense(96, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(X, y, batch_size=256, epochs=8, verbose=2)
TRAIN.unlink()
