"""Half the bits without the loss of range: activations in bfloat16, weights in float32."""

import keras
import numpy as np

keras.utils.set_random_seed(0)
keras.config.set_dtype_policy("mixed_bfloat16")
x = np.random.rand(4_096, 256).astype("float32")
y = np.random.randint(0, 10, 4_096)
model = keras.Sequential(
    [
        keras.Input((256,)),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(512, activation="relu"),
        keras.layers.Dense(10),
    ]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer="adam", loss=loss)
history = model.fit(x, y, batch_size=4_096, epochs=7, verbose=0)
print("final loss", history.history["loss"][-1])
