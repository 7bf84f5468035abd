"""What the documentation says of micro-batches, and what once was wrong: a case each."""

import keras
import numpy as np
from keras import layers, ops

from exactness.cases import ROWS, Case, compiled, noise, one_hot, optimizer, whole_numbers
from exactness.own_layers import (
    Adds,
    Counts,
    Crowd,
    Largest,
    MinusMean,
    MovingMean,
    OwnComputeLoss,
    OwnNormalization,
    Scaled,
    Shuffled,
    balance,
    by_deviation,
    contrastive,
    cubic,
    square_mean,
    square_sum,
)


def feature_cases():
    return [*_losses(), *_weights(), *_layers(), *_metrics(), *_optimizers(), *_shapes()]


def _case(name, make, data=None, culprit=None):
    return Case("features", name, make, data or _numbers, culprit)


def _numbers():
    return noise(4), noise(3, seed=1)


def _weighted():
    return (*_numbers(), np.abs(noise(seed=2)))


def _chain(*between, loss="mse", units=3, activation=None, **options):
    parts = [keras.Input((4,)), layers.Dense(9, "tanh"), *between, layers.Dense(units, activation)]
    return compiled(keras.Sequential(parts), loss, **options)


def _losses():
    square_error = keras.losses.MeanSquaredError
    for reduction in ("sum", "sum_over_batch_size", "mean", "mean_with_sample_weight"):
        name = f"reduction {reduction}"
        yield _case(name, lambda r=reduction: _chain(loss=square_error(r)), _weighted)
    yield _case("own loss", lambda: _chain(loss=cubic))
    yield _case("own loss of a batch", lambda: _chain(loss=by_deviation), culprit="'by_deviation'")
    yield _case("contrastive loss", lambda: _chain(loss=contrastive), culprit="'contrastive'")
    yield _case(
        "Dice of each sample", lambda: _chain(loss=keras.losses.Dice(axis=-1), activation="sigmoid")
    )
    yield _case(
        "ignore_class", _ignoring, lambda: (noise(4), whole_numbers(3) * (whole_numbers(2, seed=3)))
    )
    yield _case(
        "ignore_class in one micro-batch only",
        _ignoring,
        lambda: (noise(4), np.where(np.arange(ROWS) < 14, whole_numbers(2) + 1, 0)),
    )
    for function, culprit in ((cubic, None), (contrastive, "compute_loss()")):
        name = f"compute_loss with {function.__name__}"
        yield _case(name, lambda f=function: _built(OwnComputeLoss(f)), culprit=culprit)


def _ignoring():
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    return _chain(loss=loss)


def _built(model):
    model.build((None, 4))
    model.dense.build((None, 4))
    return compiled(model, None)


def _weights():
    yield _case("sample_weight", _chain, _weighted)
    yield _case("weighted_metrics", lambda: _chain(weighted_metrics=["mae", "mse"]), _weighted)
    yield _case("loss_weights", lambda: _chain(loss_weights=0.3), _weighted)
    yield _case(
        "weights of timesteps",
        lambda: _steps(mask_zero=False),
        lambda: (*_tokens(), np.abs(noise(6, seed=2))),
    )
    yield _case("mask", lambda: _steps(mask_zero=True), _tokens)
    yield _case(
        "mask and weights of timesteps", _steps, lambda: (*_tokens(), np.abs(noise(6, seed=2)))
    )
    yield _case(
        "weighted metric behind a mask",
        lambda: _steps(weighted_metrics=[keras.losses.sparse_categorical_crossentropy]),
        lambda: (*_tokens(), np.abs(noise(6, seed=2))),
    )


def _steps(mask_zero=True, **options):
    """A model with a prediction for each step of a sequence."""
    x = keras.Input((6,), dtype="int32")
    embedded = layers.Embedding(9, 4, mask_zero=mask_zero)(x)
    out = layers.Dense(5, "softmax")(layers.GRU(4, return_sequences=True)(embedded))
    return compiled(keras.Model(x, out), "sparse_categorical_crossentropy", **options)


def _tokens():
    ids = whole_numbers(8, 6) + 1
    for row, length in zip(ids, np.arange(ROWS) % 6 + 1, strict=True):
        row[length:] = 0
    return ids, whole_numbers(5, 6, seed=4)


def _layers():
    yield _case("own layer", lambda: _chain(Scaled()))
    yield _case("minus the mean", lambda: _chain(MinusMean()), culprit="(MinusMean)")
    yield _case("shuffled", lambda: _chain(Shuffled()), culprit="(Shuffled)")
    yield _case("nested", lambda: _chain(keras.Sequential([Scaled(), layers.Dense(5)])))
    yield _case(
        "shuffled deep inside",
        lambda: _chain(keras.Sequential([keras.Sequential([Shuffled()]), layers.Dense(5)])),
        culprit="(Shuffled)",
    )
    yield _case("counter", lambda: _chain(Counts()), culprit="(Counts)")
    yield _case("moving mean", lambda: _chain(MovingMean()), culprit="(MovingMean)")
    yield _case(
        "own normalization", lambda: _chain(OwnNormalization()), culprit="'own_normalization'"
    )
    yield _case("frozen normalization", lambda: _chain(layers.BatchNormalization(trainable=False)))
    yield _case("frozen layer", lambda: _chain(layers.Dense(5, trainable=False)))
    yield _case("added mean", lambda: _chain(Adds(square_mean)))
    yield _case("added sum", lambda: _chain(Adds(square_sum)), culprit="(Adds)")
    yield _case("added balance", lambda: _chain(Adds(balance)), culprit="(Adds)")
    yield _case("added by statistics", lambda: _chain(Crowd()), culprit="(Crowd)")
    regularized = {"kernel_regularizer": "l2", "activity_regularizer": "l1"}
    yield _case("regularizers", lambda: _chain(layers.Dense(5, **regularized)))
    yield _case("dropout", lambda: _chain(layers.Dropout(0.4), layers.GaussianNoise(0.2)))
    yield _case("operation of the batch", _with_operation, culprit="(Mean)")
    yield _case("shared layer", _shared)


def _with_operation():
    x = keras.Input((4,))
    h = layers.Dense(9)(x)
    h = h - ops.mean(h, axis=0, keepdims=True)
    return compiled(keras.Model(x, layers.Dense(3)(h)))


def _shared():
    x = keras.Input((4,))
    shared = layers.Dense(4, "tanh")
    return compiled(keras.Model(x, layers.Dense(3)(shared(shared(x)) + shared(x))))


def _metrics():
    yield _case("metric that is no mean", lambda: _chain(metrics=[Largest()]))
    yield _case(
        "loss of a batch as a metric",
        lambda: _chain(metrics=[keras.losses.dice], activation="sigmoid"),
    )
    yield _case("several metrics", lambda: _chain(metrics=["mae", Largest(), "mse"]), _weighted)


def _optimizers():
    sgd, adam = keras.optimizers.SGD, keras.optimizers.Adam
    schedule = keras.optimizers.schedules.ExponentialDecay
    made = {
        "clipping": lambda: sgd(0.1, momentum=0.9, clipnorm=0.01),
        "global clipping": lambda: sgd(0.1, global_clipnorm=0.01),
        "moving average of weights": lambda: adam(0.01, use_ema=True),
        "weight decay": lambda: adam(0.01, weight_decay=0.1),
        "schedule": lambda: sgd(schedule(0.1, 1, 0.5), momentum=0.9),
        "accumulated batches": lambda: sgd(0.1, gradient_accumulation_steps=2),
        "loss scale": lambda: keras.optimizers.LossScaleOptimizer(sgd(0.1, momentum=0.9)),
    }
    for name, make in made.items():
        yield _case(name, lambda m=make: _chain(optimizer=m()))


def _shapes():
    yield _case("several inputs and outputs", _two_headed, _two_headed_data)
    yield _case("an output without a loss", lambda: _two_headed(None), _two_headed_data)
    yield _case(
        "weights of several outputs",
        _two_headed,
        lambda: (
            *_two_headed_data(),
            {"kind": np.abs(noise(seed=5)), "size": np.abs(noise(seed=6))},
        ),
    )
    yield _case("nested inputs", _nested, lambda: ((noise(4), [noise(2, seed=1)]), noise(3)))
    yield _case(
        "pictures for each pixel",
        _segmenting,
        lambda: (noise(5, 4, 3), whole_numbers(4, 20)),
    )


def _two_headed(kind="categorical_crossentropy"):
    left, right = keras.Input((4,), name="left"), keras.Input((5,), name="right")
    both = layers.Concatenate()([layers.Dense(9, "tanh")(one) for one in (left, right)])
    outputs = {
        "kind": layers.Dense(3, "softmax", name="kind")(both),
        "size": layers.Dense(1, name="size")(both),
    }
    return compiled(
        keras.Model({"left": left, "right": right}, outputs),
        {"kind": kind, "size": keras.losses.MeanSquaredError("sum")},
        loss_weights=None if kind is None else {"kind": 1.0, "size": 0.05},
        metrics={"size": ["mae"]},
        optimizer=optimizer(),
    )


def _two_headed_data():
    x = {"left": noise(4), "right": noise(5, seed=1)}
    return x, {"kind": one_hot(3), "size": noise(1, seed=2)}


def _nested():
    a, b = keras.Input((4,)), keras.Input((2,))
    out = layers.Dense(3)(layers.Concatenate()([layers.Dense(9)(a), b]))
    return compiled(keras.Model((a, [b]), out))


def _segmenting():
    x = keras.Input((5, 4, 3))
    out = layers.Reshape((20, 4))(layers.Conv2D(4, 3, padding="same", activation="softmax")(x))
    loss = keras.losses.SparseCategoricalCrossentropy(ignore_class=1)
    return compiled(keras.Model(x, out), loss)
