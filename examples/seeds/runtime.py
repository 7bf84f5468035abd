"""What every example takes before its first line of work: Keras, its framework and NumPy.

`set_random_seed` is in every example; it imports TensorFlow on every backend, where there is one.
"""

import keras
import numpy as np

keras.utils.set_random_seed(0)
print("loaded", keras.ops.convert_to_numpy(keras.ops.zeros(1)).dtype == np.float32)
