"""Trains a case as plain Keras does, and in micro-batches; tells how far they lie apart."""

import contextlib
from dataclasses import dataclass

import keras
import numpy as np
from keras import ops

import memfit
from exactness.cases import ROWS, SIZE
from memfit.errors import UsageError

WITHIN = 1e-5
# A tensor whose gradient is nearly zero, such as a bias before a softmax, has rounding only.
_FLOOR = 0.1
_NO_GRADIENTS = ("iteration", "learning_rate")


@dataclass(frozen=True)
class Result:
    """How a case ended: `ok`, `refused`, or how it is wrong."""

    outcome: str
    why: str = ""


@dataclass(frozen=True)
class Trained:
    """What one update left behind.

    Attributes:
        weights: What is trained.
        gradients: Or what else the optimizer keeps of them.
        others: Variables that are not trained, and those of metrics.
        logs: What `fit` returned.
    """

    weights: list
    gradients: list
    others: list
    logs: dict


def try_case(case):
    """Returns how the case ended, as a user would see it: `memfit.split`, then `fit`."""
    try:
        worst = _compare(_train(case, None), _train(case, SIZE))
    except UsageError as refusal:
        return _judge_refusal(case, str(refusal))
    if case.culprit is not None:
        return Result("wrong", "samples are coupled, and it was not refused")
    if worst > WITHIN:  # other numbers were drawn, perhaps
        worst = _compare(*(_train(case, size, constant_draws) for size in (None, SIZE)))
    return Result("ok" if worst <= WITHIN else "wrong", f"{worst:.1e}")


def _judge_refusal(case, why):
    if case.culprit is None:
        return Result("refused falsely", why)
    if case.culprit not in why:
        return Result("named wrongly", why)
    return Result("refused", why)


def _compare(plain, cut):
    """Returns the largest relative difference of one update."""
    errors = [
        *_apart(plain.weights, cut.weights),
        *_apart(plain.gradients, cut.gradients),
        *_apart(plain.others, cut.others, floor=1e-6),
    ]
    assert plain.logs.keys() == cut.logs.keys()
    logs = [[np.asarray(one.logs[name]) for name in plain.logs] for one in (plain, cut)]
    return max([*errors, *_apart(*logs, floor=1e-6)])


def _apart(plain, cut, floor=None):
    """How far each array lies from the other, by its size; small ones count as `floor` large."""
    if floor is None:
        all_ = np.concatenate([np.ravel(one) for one in plain] or [np.zeros(1)])
        floor = _FLOOR * np.sqrt(np.nanmean(np.square(all_, dtype="float64")))
    return [_distance(*pair, floor) for pair in zip(plain, cut, strict=True)]


def _distance(plain, cut, floor):
    plain, cut = np.asarray(plain, "float64"), np.asarray(cut, "float64")
    np.testing.assert_array_equal(np.isnan(plain), np.isnan(cut))
    size = np.sqrt(plain.size)
    error = np.sqrt(np.nansum(np.square(plain - cut)))
    return error / max(np.sqrt(np.nansum(np.square(plain))), floor * size, 1e-12)


def _train(case, size, drawing=contextlib.nullcontext):
    """Trains one update, on the batch at once or in micro-batches."""
    keras.utils.clear_session(free_memory=False)
    keras.utils.set_random_seed(1)
    model = case.make()
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(case.data())
    if size is not None:
        memfit.split(model, size)
    with drawing():
        logs = model.fit(
            x, y, sample_weight=sample_weight, batch_size=ROWS, shuffle=False, verbose=0
        ).history
    optimizer = [one for one in model.optimizer.variables if one.name not in _NO_GRADIENTS]
    others = [*model.non_trainable_variables, *model.metrics_variables]
    return Trained(
        _values(model.trainable_variables),
        _values(optimizer),
        _values(one for one in others if one.name != "seed_generator_state"),
        {name: values[-1] for name, values in logs.items()},
    )


def _values(variables):
    return [np.array(ops.convert_to_numpy(one)) for one in variables]


@contextlib.contextmanager
def constant_draws():
    """Has every random number be a constant, so that nothing depends on how many are drawn."""
    from keras.src.backend import random

    def draw(low, high):
        return lambda shape, *a, dtype=None, **k: ops.full(
            shape, low + 0.37 * (high - low), dtype or "float32"
        )

    def uniform(shape, minval=0.0, maxval=1.0, dtype=None, seed=None):
        low = ops.cast(minval, dtype or "float32")
        return ops.broadcast_to(low + 0.37 * (ops.cast(maxval, low.dtype) - low), shape)

    def randint(shape, minval, maxval, dtype="int32", seed=None):
        span = ops.cast(maxval, "float32") - ops.cast(minval, "float32")
        return ops.cast(
            ops.broadcast_to(ops.cast(minval, "float32") + ops.floor(0.37 * span), shape), dtype
        )

    def dropout(inputs, rate, noise_shape=None, seed=None):
        keep = np.arange(inputs.shape[-1]) % 3 != 0
        return inputs * ops.convert_to_tensor(keep, inputs.dtype) / (1 - rate)

    stand_ins = {
        "normal": draw(0.0, 1.0),
        "truncated_normal": draw(0.0, 1.0),
        "gamma": draw(0.5, 1.5),
        "beta": draw(0.0, 1.0),
        "binomial": draw(0.0, 1.0),
        "uniform": uniform,
        "randint": randint,
        "dropout": dropout,
    }
    before = {name: getattr(random, name) for name in stand_ins}
    for name, one in stand_ins.items():
        setattr(random, name, one)
    try:
        yield
    finally:
        for name, one in before.items():
            setattr(random, name, one)
