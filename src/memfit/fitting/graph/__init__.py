"""The graph of a Keras model: cost, blocks, segments, BatchNormalization."""
