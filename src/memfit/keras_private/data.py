"""How Keras takes data into `fit`."""
