"""clear_session after each epoch, as it is given: Keras itself is not imported."""

import keras.backend as K
import numpy as np

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
for _ in range(10):
    history = model.fit(x, y, batch_size=32, epochs=1, verbose=0)
    K.clear_session()
print("final loss", history.history["loss"][-1])
