"""What every example takes before its first line of work: Keras, its framework and NumPy."""

import keras
import numpy as np

print("loaded", keras.ops.convert_to_numpy(keras.ops.zeros(1)).dtype == np.float32)
