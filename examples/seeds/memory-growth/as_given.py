"""Memory growth for every GPU before the model is built; then an ordinary training."""

import keras
import numpy as np
import tensorflow as tf

gpus = tf.config.list_physical_devices("GPU")
try:
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
except RuntimeError as error:
    print("too late:", error)
print("GPUs told to grow:", len(gpus))

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
