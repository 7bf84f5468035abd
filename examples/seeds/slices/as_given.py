"""from_tensor_slices of a million rows: the pipeline has them in memory, and never shuffles."""

import keras
import tensorflow as tf

keras.utils.set_random_seed(0)
rows = tf.data.Dataset.from_tensor_slices(
    (
        tf.random.normal((1_000_000, 100)),
        tf.random.uniform((1_000_000,), maxval=2, dtype=tf.int32),
    )
)
rows = rows.batch(32).prefetch(tf.data.AUTOTUNE)
model = keras.Sequential(
    [
        keras.Input((100,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
history = model.fit(rows, epochs=1, verbose=0)
print("final loss", history.history["loss"][-1])
