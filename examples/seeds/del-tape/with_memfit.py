"""What does free activations early: each batch as micro-batches of 16, inside one step."""

import keras
import numpy as np

import memfit

keras.utils.set_random_seed(0)
images = np.random.rand(1_024, 64, 64, 3).astype("float32")
labels = keras.utils.to_categorical(np.random.randint(0, 10, 1_024), 10)
model = keras.Sequential(
    [
        keras.Input((64, 64, 3)),
        keras.layers.Conv2D(16, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(16, 3, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="categorical_crossentropy")
print(memfit.split(model, 16))
history = model.fit(images, labels, batch_size=128, epochs=7, verbose=0)
print("final loss", history.history["loss"][-1])
