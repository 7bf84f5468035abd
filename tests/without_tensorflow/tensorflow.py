"""Found before TensorFlow itself by scripts that train on another backend: as if it were absent.

Keras imports TensorFlow at the first `fit`, whatever the backend, if it is installed. Users of
JAX or torch rarely have it, and a test that starts a process waits for it.
"""

raise ImportError("TensorFlow is hidden from this process")
