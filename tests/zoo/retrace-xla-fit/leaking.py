# %% [markdown]
# # Sensor windows - baseline
# GRU was too slow, plain dense with pooling does the job.

# %%
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(42)

# %%
N = 24


def windows():
    rng = np.random.default_rng()
    for _ in range(N):
        n = int(rng.integers(20, 600))
        yield rng.normal(size=(n, 12)).astype("float32"), np.float32(n % 2)


train_ds = tf.data.Dataset.from_generator(
    windows,
    output_signature=(tf.TensorSpec((None, 12)), tf.TensorSpec(())),
)
train_ds = train_ds.padded_batch(8, padded_shapes=([None, 12], []))

# %%
model = keras.Sequential(
    [
        keras.Input((None, 12)),
        keras.layers.Dense(48, activation="relu"),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="sgd", loss="binary_crossentropy", jit_compile=True)

# %%
model.fit(train_ds, epochs=15, verbose=2)
