"""Every metric of `keras.metrics`."""

import inspect

import keras
from keras import layers

from exactness.cases import Case, compiled, noise, one_hot, whole_numbers

# No metrics of a model: base classes, and those that take values rather than targets.
_NO_METRIC = {"Metric", "Mean", "MeanMetricWrapper", "Sum"}
_ARGUMENTS = {
    "BinaryIoU": {"target_class_ids": [0, 1]},
    "IoU": {"num_classes": 3, "target_class_ids": [0, 2], "sparse_y_pred": False},
    "MeanIoU": {"num_classes": 3, "sparse_y_pred": False},
    "OneHotIoU": {"num_classes": 3, "target_class_ids": [0, 2]},
    "OneHotMeanIoU": {"num_classes": 3},
    "PrecisionAtRecall": {"recall": 0.5},
    "RecallAtPrecision": {"precision": 0.5},
    "SensitivityAtSpecificity": {"specificity": 0.5},
    "SpecificityAtSensitivity": {"sensitivity": 0.5},
    "TopKCategoricalAccuracy": {"k": 2},
    "SparseTopKCategoricalAccuracy": {"k": 2},
}
_SPARSE = {
    "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy",
    "SparseTopKCategoricalAccuracy",
    "IoU",
    "MeanIoU",
}


def metric_cases():
    own = inspect.getmembers(keras.metrics, inspect.isclass)
    return [_case(name, kind) for name, kind in own if name not in _NO_METRIC]


def _case(name, kind):
    is_sparse = name in _SPARSE

    def make():
        model = keras.Sequential([keras.Input((4,)), layers.Dense(3, "softmax")])
        loss = "sparse_categorical_crossentropy" if is_sparse else "categorical_crossentropy"
        return compiled(model, loss, metrics=[kind(**_ARGUMENTS.get(name, {}))])

    def data():
        return noise(4), whole_numbers(3) if is_sparse else one_hot(3)

    return Case("metrics", name, make, data)
