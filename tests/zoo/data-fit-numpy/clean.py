import keras
import numpy as np
from prepare import OFFSET, ROWS, TRAIN, labels


class Pixels(keras.utils.PyDataset):
    def __len__(self):
        return ROWS // 256

    def __getitem__(self, i):
        x = np.fromfile(TRAIN, "uint8", 256 * 1024, offset=OFFSET + i * 256 * 1024)
        return x.reshape(256, 1024).astype("float32") / 255.0, y[i * 256 : i * 256 + 256]


y = labels(ROWS)

model = keras.Sequential(
    [
        keras.layers.Input((1024,)),
        keras.layers.Dense(96, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(Pixels(), epochs=8, verbose=2)
TRAIN.unlink()
