"""What memfit uses of Keras that Keras does not document: `keras.src` and underscore names.

No other module uses such a name (`tests/test_keras_private_names.py`), and every function here
says with `relies_on` which ones it uses, so that one test
(`tests/backends/test_keras_private.py`) can say what a new Keras has moved.

Checked with Keras 3.15.1, on TensorFlow, JAX and torch. Nothing here imports Keras before it is
called.
"""
