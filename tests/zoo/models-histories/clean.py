import gc
import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np

rng = np.random.default_rng(1)
x = rng.normal(size=(1024, 300)).astype("float32")
y = rng.integers(0, 5, size=(1024,))


def get_model(units):
    net = keras.Sequential(
        [
            keras.layers.Input((300,)),
            keras.layers.Dense(units, activation="relu"),
            keras.layers.Dense(units, activation="relu"),
            keras.layers.Dense(5, activation="softmax"),
        ]
    )
    net.compile("adam", "sparse_categorical_crossentropy", metrics=["acc"])
    return net


histories = []
for seed in range(14):
    keras.utils.set_random_seed(seed)
    model = get_model(768)
    histories.append(model.fit(x, y, epochs=3, batch_size=128, verbose=0).history)
    print(seed, histories[-1]["acc"][-1])
    del model
    gc.collect()

best = max(range(len(histories)), key=lambda i: histories[i]["acc"][-1])
print("best seed", best)
