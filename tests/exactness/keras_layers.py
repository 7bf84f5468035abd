"""Every layer of `keras.layers`, each class once, in the smallest model that trains through it.

What can be made without arguments is; `_ARGUMENTS` has those of the others. A layer is given the
first kind of input that it takes.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np
from keras import layers

from exactness.cases import ROWS, Case, compiled, noise, whole_numbers

# Base classes, what describes an input, and code of another framework or file.
NO_LAYER = {
    "FlaxLayer",  # of another library
    "InputLayer",
    "InputSpec",
    "JaxLayer",
    "Layer",
    "MaxNumBoundingBoxes",  # takes boxes around what is in pictures
    "TFSMLayer",  # a file
    "TorchModuleWrapper",
    "Wrapper",
}
# What a refusal must name.
_COUPLED = {
    "AugMix",  # draws with Python's `random`
    "BatchNormalization",
    "CutMix",  # mixes pictures
    "Equalization",  # by the histogram of all pictures of a batch
    "MixUp",
    "RandAugment",  # equalizes, among others
    "SpectralNormalization",  # one iteration a call
}


def _pixels(*shape):
    """Pictures of whole numbers from 0 to 255."""
    return np.random.default_rng(0).integers(0, 256, (ROWS, *shape)).astype("float32")


@dataclass(frozen=True)
class Kind:
    """A kind of input.

    Attributes:
        shape: Of a sample.
        data: Returns the inputs of a batch.
        dtype: Of the inputs.
        trains: Whether something before the layer can be trained.
        number: How many such inputs the layer takes.
    """

    shape: tuple[int, ...]
    data: Callable[[], Any]
    dtype: str = "float32"
    trains: bool = True
    number: int = 1


_VECTOR = Kind((8,), lambda: noise(8))
_SEQUENCE = Kind((9, 4), lambda: noise(9, 4))
_IMAGE = Kind((9, 8, 3), lambda: noise(9, 8, 3))
_VOLUME = Kind((4, 4, 4, 2), lambda: noise(4, 4, 4, 2))
_FILM_1D = Kind((3, 8, 2), lambda: noise(3, 8, 2))
_FILM_3D = Kind((2, 3, 4, 3, 1), lambda: noise(2, 3, 4, 3, 1))
_PIXELS = Kind((9, 8, 3), lambda: _pixels(9, 8, 3), trains=False)
_TOKENS = Kind((9,), lambda: whole_numbers(10, 9), "int32", trains=False)
_NUMBERS = Kind((8,), lambda: noise(8), trains=False)
_SOUND = Kind((64,), lambda: noise(64), trains=False)
_RECORDING = Kind((64, 1), lambda: noise(64, 1), trains=False)
_TEXT = Kind(
    (), lambda: np.array([f"word{row % 7} and" for row in range(ROWS)]), "string", trains=False
)
_PAIR = Kind((9, 4), lambda: (noise(9, 4), noise(9, 4, seed=1)), number=2)
_CODES = Kind((1,), lambda: whole_numbers(9, 1), "int32", trains=False)
_TWO_CODES = Kind(
    (1,), lambda: (whole_numbers(9, 1), whole_numbers(5, 1, seed=1)), "int32", False, number=2
)
_TRIED = (_VECTOR, _SEQUENCE, _IMAGE, _VOLUME)


@dataclass(frozen=True)
class Row:
    """How a layer is made, and of what kind its input is.

    Attributes:
        kind: Of input; `None` for the first that it takes.
        arguments: Returns the arguments that it is made with.
        call: How it is called with its inputs.
        pools: Whether pictures are pooled behind it: those that Keras builds with are larger.
        needs_tensorflow: Whether it computes with TensorFlow on every backend.
    """

    kind: Kind | None = None
    arguments: Callable[[], dict[str, Any]] = dict
    call: Callable[..., Any] = field(default=lambda layer, *given: layer(*given))
    pools: bool = False
    needs_tensorflow: bool = False


def _listed(layer, *given):
    return layer(list(given))


def _filters(kind, **more):
    return Row(kind, lambda: {"filters": 3, "kernel_size": 2, **more})


def _kernel(kind, **more):
    return Row(kind, lambda: {"kernel_size": 2, **more})


def _given(kind, **arguments):
    return Row(kind, lambda: arguments)


def _inner(make, kind):
    return Row(kind, lambda: {"layer": make()})


_MERGE = Row(_PAIR, call=_listed)
ROWS_OF_LAYERS = {
    "Activation": _given(_VECTOR, activation="tanh"),
    "ActivityRegularization": _given(_VECTOR, l2=0.1),
    **{
        f"Adaptive{kind}Pooling{rank}D": _given(of, output_size=2)
        for kind in ("Average", "Max")
        for rank, of in ((1, _SEQUENCE), (2, _IMAGE), (3, _VOLUME))
    },
    **dict.fromkeys(
        ("Add", "Average", "Concatenate", "Maximum", "Minimum", "Multiply", "Subtract"), _MERGE
    ),
    "AdditiveAttention": _MERGE,
    "AlphaDropout": _given(_VECTOR, rate=0.3),
    "Attention": _MERGE,
    "AugMix": _given(_PIXELS, value_range=(0, 255)),
    "AutoContrast": _given(_PIXELS, value_range=(0, 255)),
    **{
        f"AveragePooling{rank}D": _given(kind, pool_size=2)
        for rank, kind in ((1, _SEQUENCE), (2, _IMAGE), (3, _VOLUME))
    },
    "Bidirectional": _inner(lambda: layers.GRU(3), _SEQUENCE),
    "CategoryEncoding": _given(_TOKENS, num_tokens=10),
    "CenterCrop": _given(_PIXELS, height=4, width=4),
    "ContrastLimitedAdaptiveHistogramEqualization": Row(_PIXELS),
    **{
        name: _filters(kind)
        for rank, kind in ((1, _SEQUENCE), (2, _IMAGE), (3, _VOLUME))
        for name in (f"Conv{rank}D", f"Conv{rank}DTranspose")
    },
    "ConvLSTM1D": _filters(_FILM_1D),
    "ConvLSTM2D": _filters(_VOLUME),
    "ConvLSTM3D": _filters(_FILM_3D),
    "CutMix": Row(_PIXELS),
    "Dense": _given(_VECTOR, units=3),
    "DepthwiseConv1D": _kernel(_SEQUENCE),
    "DepthwiseConv2D": _kernel(_IMAGE),
    "Discretization": _given(_NUMBERS, bin_boundaries=[-1.0, 0.0, 1.0]),
    "Dot": Row(_PAIR, lambda: {"axes": 2}, _listed),
    "Dropout": _given(_VECTOR, rate=0.3),
    "EinsumDense": _given(_SEQUENCE, equation="abc,cd->abd", output_shape=(9, 3)),
    "Embedding": _given(_TOKENS, input_dim=10, output_dim=3),
    "Equalization": Row(_PIXELS),
    "GRU": _given(_SEQUENCE, units=3),
    "GRUCell": Row(_SEQUENCE, lambda: {"cell": layers.GRUCell(3)}),
    "GaussianDropout": _given(_VECTOR, rate=0.3),
    "GaussianNoise": _given(_VECTOR, stddev=0.3),
    "GroupNormalization": _given(_VECTOR, groups=2),
    "GroupedQueryAttention": Row(
        _PAIR, lambda: {"head_dim": 2, "num_query_heads": 2, "num_key_value_heads": 1}
    ),
    "HashedCrossing": Row(
        _TWO_CODES,
        lambda: {"num_bins": 5},
        lambda layer, *given: layer(given),
        needs_tensorflow=True,
    ),
    "Hashing": Row(_CODES, lambda: {"num_bins": 5}, needs_tensorflow=True),
    "IntegerLookup": Row(_TOKENS, lambda: {"vocabulary": [1, 2, 3, 4]}, needs_tensorflow=True),
    "LSTM": _given(_SEQUENCE, units=3),
    "LSTMCell": Row(_SEQUENCE, lambda: {"cell": layers.LSTMCell(3)}),
    "Lambda": Row(_VECTOR, lambda: {"function": keras.ops.square, "output_shape": (8,)}),
    "Masking": Row(_SEQUENCE),
    "MelSpectrogram": _given(_SOUND, fft_length=16, num_mel_bins=4, sampling_rate=100, max_freq=50),
    "MixUp": Row(_PIXELS),
    "MultiHeadAttention": Row(_PAIR, lambda: {"num_heads": 2, "key_dim": 2}),
    "Permute": _given(_SEQUENCE, dims=(2, 1)),
    "Pipeline": Row(_VECTOR, lambda: {"layers": [layers.Dense(3), layers.Dropout(0.3)]}),
    "RNN": Row(_SEQUENCE, lambda: {"cell": layers.SimpleRNNCell(3)}),
    "RandAugment": _given(_PIXELS, value_range=(0, 255)),
    "RandomBrightness": _given(_PIXELS, factor=0.3),
    "RandomColorDegeneration": _given(_PIXELS, factor=0.5),
    "RandomColorJitter": _given(_PIXELS, brightness_factor=0.2, contrast_factor=0.2),
    "RandomContrast": _given(_PIXELS, factor=0.3),
    "RandomCrop": Row(_PIXELS, lambda: {"height": 4, "width": 5}, pools=True),
    "RandomElasticTransform": Row(_PIXELS),
    "RandomErasing": Row(_PIXELS),
    "RandomFlip": Row(_PIXELS),
    "RandomGaussianBlur": Row(_PIXELS),
    "RandomGrayscale": Row(_PIXELS),
    "RandomHue": _given(_PIXELS, factor=0.3),
    "RandomInvert": Row(_PIXELS),
    "RandomPerspective": Row(_PIXELS),
    "RandomPosterization": _given(_PIXELS, factor=4),
    "RandomRotation": _given(_PIXELS, factor=0.2),
    "RandomSaturation": _given(_PIXELS, factor=0.5),
    "RandomSharpness": _given(_PIXELS, factor=0.5),
    "RandomShear": _given(_PIXELS, x_factor=0.3),
    "RandomTranslation": _given(_PIXELS, height_factor=0.2, width_factor=0.2),
    "RandomZoom": _given(_PIXELS, height_factor=0.2),
    "RepeatVector": _given(_VECTOR, n=2),
    "Rescaling": _given(_NUMBERS, scale=0.5),
    "Reshape": _given(_VECTOR, target_shape=(4, 2)),
    "Resizing": _given(_PIXELS, height=5, width=6),
    "ReversibleEmbedding": _given(_TOKENS, input_dim=10, output_dim=3),
    "STFTSpectrogram": _given(_RECORDING, frame_length=16, frame_step=8),
    "SeparableConv1D": _filters(_SEQUENCE),
    "SeparableConv2D": _filters(_IMAGE),
    "SimpleRNN": _given(_SEQUENCE, units=3),
    "SimpleRNNCell": Row(_SEQUENCE, lambda: {"cell": layers.SimpleRNNCell(3)}),
    "Solarization": _given(_PIXELS, threshold_factor=0.5),
    **{
        f"SpatialDropout{rank}D": _given(kind, rate=0.3)
        for rank, kind in ((1, _SEQUENCE), (2, _IMAGE), (3, _VOLUME))
    },
    "SpectralNormalization": _inner(lambda: layers.Dense(3), _VECTOR),
    "StackedRNNCells": Row(
        _SEQUENCE,
        lambda: {"cell": layers.StackedRNNCells([layers.GRUCell(3), layers.GRUCell(2)])},
    ),
    "StringLookup": Row(
        _TEXT, lambda: {"vocabulary": ["word1 and", "word2 and"]}, needs_tensorflow=True
    ),
    "TextVectorization": Row(
        _TEXT,
        lambda: {"vocabulary": ["word1", "and"], "output_sequence_length": 2},
        needs_tensorflow=True,
    ),
    "TimeDistributed": _inner(lambda: layers.Dense(3), _SEQUENCE),
}
# Cells run inside an RNN.
_CELLS = {"GRUCell", "LSTMCell", "SimpleRNNCell", "StackedRNNCells"}


def layer_cases():
    """The cases, by class: a class may have several names."""
    own = inspect.getmembers(layers, inspect.isclass)
    kinds = {kind: kind.__name__ for name, kind in own if name not in NO_LAYER}
    return [_case(name, kind) for kind, name in kinds.items() if _is_here(name)]


def _is_here(name):
    return keras.backend.backend() == "tensorflow" or not _row(name).needs_tensorflow


def _row(name):
    return ROWS_OF_LAYERS.get(name, Row())


def _case(name, kind):
    row = _row(name)
    cls = layers.RNN if name in _CELLS else kind
    tried = (row.kind,) if row.kind else _TRIED
    culprit = name if name in _COUPLED else None
    chosen = []

    def make():
        for one in chosen or tried:
            try:
                model = _model(cls(**row.arguments()), one, row)
            except ValueError:
                continue
            chosen[:] = [one]
            return compiled(model)
        raise AssertionError(
            f"keras.layers.{name} takes none of the inputs that are tried: give it a row in "
            "tests/exactness/keras_layers.py"
        )

    def data():
        return chosen[0].data(), noise(2, seed=1)

    return Case("layers", name, make, data, culprit)


def _model(layer, kind, row):
    inputs = [keras.Input(kind.shape, dtype=kind.dtype) for _ in range(kind.number)]
    given = [layers.Dense(kind.shape[-1])(one) for one in inputs] if kind.trains else inputs
    out = keras.tree.flatten(row.call(layer, *given))[0]
    if any(out is one for one in given):  # then Keras leaves the layer out
        called = _Called(layer)
        called.build((None, *kind.shape))
        return called
    if not keras.backend.is_float_dtype(keras.backend.standardize_dtype(out.dtype)):
        out = layers.Rescaling(0.1)(out)
    if len(out.shape) == 1:
        out = layers.Reshape((1,))(out)
    if len(out.shape) > 2:
        out = layers.GlobalAveragePooling2D()(out) if row.pools else layers.Flatten()(out)
    return keras.Model(inputs if len(inputs) > 1 else inputs[0], layers.Dense(2)(out))


class _Called(keras.Model):
    """Calls a layer that says of itself that it returns its input."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.flat, self.last = layers.Flatten(), layers.Dense(2)

    def call(self, x, training=False):
        return self.last(self.flat(self.layer(x, training=training)))
