"""Layers, losses and metrics as users write them, with and without a coupling of samples."""

import keras
from keras import layers, ops


class MinusMean(layers.Layer):
    """Takes the mean of the batch away."""

    def call(self, x):
        return x - ops.mean(x, axis=0, keepdims=True)


class Shuffled(layers.Layer):
    """Gives each sample half of its neighbour."""

    def call(self, x):
        return 0.5 * (x + ops.roll(x, 1, axis=0))


class Scaled(layers.Layer):
    """Has a weight of its own, and treats each sample by itself."""

    def build(self, shape):
        self.scale = self.add_weight(name="scale", shape=shape[-1:], initializer="ones")

    def call(self, x):
        return x * self.scale + ops.mean(x, axis=-1, keepdims=True)


class Adds(layers.Layer):
    """Adds a loss."""

    def __init__(self, function, **how):
        super().__init__(**how)
        self.function = function

    def call(self, x):
        self.add_loss(self.function(x))
        return x


class Counts(layers.Layer):
    """Counts its calls."""

    def build(self, shape):
        self.seen = self.add_weight(name="seen", initializer="zeros", trainable=False)

    def call(self, x, training=False):
        if training:
            self.seen.assign(self.seen + 1.0)
        return x


class MovingMean(layers.Layer):
    """Keeps a moving mean of what it sees."""

    def build(self, shape):
        self.mean = self.add_weight(
            name="mean", shape=shape[-1:], initializer="zeros", trainable=False
        )

    def call(self, x, training=False):
        if training:
            self.mean.assign(0.9 * self.mean + 0.1 * ops.mean(x, axis=0))
        return x


class OwnNormalization(layers.BatchNormalization):
    """A subclass that overrides nothing of the computation."""


class Crowd(layers.Layer):
    """A regularizer of activities by the statistics of the batch."""

    def call(self, x):
        self.add_loss(ops.sum(ops.square(ops.mean(x, axis=0))))
        return x


def balance(x):
    """As mixtures of experts balance their load."""
    share = ops.mean(ops.softmax(x), axis=0)
    return 0.01 * ops.sum(share * share)


def square_mean(x):
    return ops.mean(ops.square(x))


def square_sum(x):
    return ops.sum(ops.square(x))


def contrastive(y_true, y_pred):
    """Compares all samples of a batch with each other."""
    likeness = ops.matmul(y_pred, ops.transpose(y_pred))
    return ops.logsumexp(likeness, axis=-1) - ops.diagonal(likeness)


def cubic(y_true, y_pred):
    """One number a sample."""
    return ops.mean(ops.abs(y_true - y_pred) ** 3, axis=-1)


def by_deviation(y_true, y_pred):
    """Divides by how far the targets of the batch spread."""
    return ops.mean(ops.square(y_true - y_pred)) / (1.0 + ops.std(y_true))


class Largest(keras.metrics.Metric):
    """Sums the largest error of each batch."""

    def __init__(self, name="largest"):
        super().__init__(name=name)
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.total.assign_add(ops.max(ops.abs(y_true - y_pred)))

    def result(self):
        return ops.convert_to_tensor(self.total)


class OwnComputeLoss(keras.Model):
    """Computes its loss with arithmetic on the targets."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.dense = layers.Dense(3)

    def call(self, x):
        return self.dense(x)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return ops.mean(self.function(2.0 * y + 1.0, y_pred))
