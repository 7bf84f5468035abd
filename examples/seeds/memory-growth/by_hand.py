"""What each framework wants, by hand: a call, a variable of the environment, or nothing."""

import os

if os.environ.get("KERAS_BACKEND", "tensorflow") == "tensorflow":
    import tensorflow as tf

    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)
elif os.environ["KERAS_BACKEND"] == "jax":
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"

import keras
import numpy as np

keras.utils.set_random_seed(0)
x = np.random.rand(10_000, 100).astype("float32")
y = np.random.randint(0, 10, 10_000)
model = keras.Sequential(
    [
        keras.Input((100,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
history = model.fit(x, y, batch_size=32, epochs=7, verbose=0)
print("final loss", history.history["loss"][-1])
