"""Models drawn at random: each sample by itself, or with a coupling of samples put in somewhere."""

from dataclasses import dataclass

import keras
import numpy as np
from hypothesis import strategies as st
from keras import layers

from conftest import compile_options
from exactness.own_layers import (
    Adds,
    Counts,
    Crowd,
    Largest,
    MinusMean,
    MovingMean,
    Scaled,
    Shuffled,
    balance,
    by_deviation,
    contrastive,
    cubic,
    square_mean,
    square_sum,
)

WIDTH, STEPS, WORDS, OUT = 8, 6, 9, 3


def _residual(x):
    return layers.Add()([x, layers.Dense(WIDTH, "tanh")(x)])


def _gated(x):
    return layers.Multiply()([x, layers.Dense(WIDTH, "sigmoid")(x)])


def _nested(x):
    inner = [layers.Dense(WIDTH, "tanh"), layers.Dropout(0.2), layers.Dense(WIDTH)]
    return keras.Sequential([keras.Input((WIDTH,)), *inner])(x)


def _shared(x):
    shared = layers.Dense(WIDTH, "tanh")
    return layers.Add()([shared(x), shared(shared(x))])


def _attended(x):
    steps = layers.Reshape((4, 2))(x)
    return layers.Flatten()(layers.MultiHeadAttention(2, 2, dropout=0.1)(steps, steps))


# What keeps each sample by itself: makes what takes and gives vectors.
_SINGLE = {
    "dense": lambda: layers.Dense(WIDTH, "tanh"),
    "scaled": Scaled,
    "norm": layers.LayerNormalization,
    "groups": lambda: layers.GroupNormalization(2),
    "dropout": lambda: layers.Dropout(0.3),
    "noise": lambda: layers.GaussianNoise(0.2),
    "regularized": lambda: layers.Dense(WIDTH, kernel_regularizer="l2", bias_regularizer="l1"),
    "active": lambda: layers.Dense(WIDTH, "tanh", activity_regularizer="l2"),
    "added mean": lambda: Adds(square_mean),
    "residual": lambda: _residual,
    "gated": lambda: _gated,
    "nested": lambda: _nested,
    "shared": lambda: _shared,
    "attention": lambda: _attended,
    "frozen": lambda: layers.Dense(WIDTH, trainable=False),
    "frozen batch norm": lambda: layers.BatchNormalization(trainable=False),
}
# What couples samples, and what a refusal must name.
COUPLED_LAYERS = {
    "minus mean": (MinusMean, "(MinusMean)"),
    "shuffled": (Shuffled, "(Shuffled)"),
    "added sum": (lambda: Adds(square_sum), "(Adds)"),
    "added balance": (lambda: Adds(balance), "(Adds)"),
    "added by statistics": (Crowd, "(Crowd)"),
    "counter": (Counts, "(Counts)"),
    "moving mean": (MovingMean, "(MovingMean)"),
}
COUPLED_LOSSES = {"contrastive": contrastive, "by deviation": by_deviation}
_LOSSES = {
    "mse": lambda: "mse",
    "mae": lambda: "mae",
    "sum": lambda: keras.losses.MeanSquaredError("sum"),
    "huber": keras.losses.Huber,
    "own": lambda: cubic,
    "cosine": keras.losses.CosineSimilarity,
    "ignored": lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=1),
}


@dataclass(frozen=True)
class Description:
    """A model in words; `coupling` is the name of what couples samples, if anything does."""

    inputs: tuple[str, ...]
    trunk: tuple[str, ...]
    losses: tuple[str, ...]
    has_steps: bool
    weighted: bool
    loss_weights: bool
    metrics: tuple[str, ...]
    rows: int
    coupling: str | None
    place: int


@st.composite
def descriptions(draw, couplings):
    return Description(
        inputs=tuple(draw(st.lists(st.sampled_from(["vector", "tokens"]), min_size=1, max_size=3))),
        trunk=tuple(draw(st.lists(st.sampled_from(list(_SINGLE)), min_size=1, max_size=4))),
        losses=tuple(draw(st.lists(st.sampled_from(list(_LOSSES)), min_size=1, max_size=2))),
        has_steps=draw(st.booleans()),
        weighted=draw(st.booleans()),
        loss_weights=draw(st.booleans()),
        metrics=tuple(draw(st.sampled_from([(), ("mae",), ("mse", "mae"), ("largest",)]))),
        rows=draw(st.sampled_from([17, 20, 33, 70])),
        coupling=draw(st.sampled_from(couplings)),
        place=draw(st.integers(0, 4)),
    )


def make_model(said):
    """Returns the model that a description tells of."""
    inputs = [_input(kind, number) for number, kind in enumerate(said.inputs)]
    steps = [_embed(one, said.has_steps) for one in inputs]
    x = [pooled for pooled, _ in steps]
    x = layers.Concatenate()(x) if len(x) > 1 else x[0]
    x = layers.Dense(WIDTH, "tanh")(x)
    trunk = [_SINGLE[name] for name in said.trunk]
    if said.coupling in COUPLED_LAYERS:
        trunk.insert(min(said.place, len(trunk)), COUPLED_LAYERS[said.coupling][0])
    for part in trunk:
        x = part()(x)
    outputs = [layers.Dense(OUT, name=f"out_{number}")(x) for number in range(len(said.losses))]
    losses = [_LOSSES[name]() for name in said.losses]
    if said.coupling in COUPLED_LOSSES:
        losses[said.place % len(losses)] = COUPLED_LOSSES[said.coupling]
    each = next((one for _, one in steps if one is not None), None)
    if each is not None:
        outputs.append(layers.Dense(OUT, name="steps")(each))
        losses.append(keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model = keras.Model(inputs, outputs)
    shares = [0.5 + 0.3 * index for index in range(len(losses))]
    metrics = [Largest() if name == "largest" else name for name in said.metrics]
    model.compile(
        "adam",
        losses,
        loss_weights=shares if said.loss_weights else None,
        metrics=[metrics if _takes_numbers(said, 0) else [], *[[] for _ in losses[1:]]],
        **compile_options(),
    )
    return model


def _input(kind, number):
    if kind == "vector":
        return keras.Input((4 + number,), name=f"vector_{number}")
    return keras.Input((STEPS,), dtype="int32", name=f"tokens_{number}")


def _embed(x, has_steps):
    """Returns a vector for an input, and one for each step where there is such an output."""
    if len(x.shape) == 2 and x.dtype == "float32":
        return layers.Dense(WIDTH, "tanh")(x), None
    steps = layers.GRU(5, return_sequences=True)(layers.Embedding(WORDS, 5, mask_zero=True)(x))
    return layers.GlobalAveragePooling1D()(steps), steps if has_steps else None


def _takes_numbers(said, index):
    """Whether the targets of an output are numbers, not classes."""
    is_coupled = said.coupling in COUPLED_LOSSES and said.place % len(said.losses) == index
    return is_coupled or said.losses[index] != "ignored"


def make_batch(said, model):
    """Returns inputs, targets and weights for the model."""
    draw = np.random.default_rng(said.rows + said.place)
    x = [_values(draw, kind, said.rows, number) for number, kind in enumerate(said.inputs)]
    y = [
        draw.standard_normal((said.rows, OUT)).astype("float32")
        if _takes_numbers(said, index)
        else draw.integers(0, OUT, said.rows)
        for index in range(len(said.losses))
    ]
    weights = [draw.random(said.rows).astype("float32") + 0.1 for _ in y]
    if len(model.outputs) > len(y):
        y.append(draw.integers(0, OUT, (said.rows, STEPS)))
        weights.append(draw.random((said.rows, STEPS)).astype("float32") + 0.1)
    if len(y) == 1:
        y, weights = y[0], weights[0]
    return x, y, weights if said.weighted else None


def _values(draw, kind, rows, number):
    if kind == "vector":
        return draw.standard_normal((rows, 4 + number)).astype("float32")
    ids = draw.integers(1, WORDS, (rows, STEPS)).astype("int32")
    for row, length in zip(ids, draw.integers(1, STEPS + 1, rows), strict=True):
        row[length:] = 0
    return ids
