"""The models that `fit.py` trains, and their data: a conv net, a transformer, a dense net."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LENGTH, WORDS, WIDTH, HEADS, DEPTH = 64, 1000, 64, 4, 2
PIXELS, CLASSES = 32, 10
FEATURES = 100


@dataclass(frozen=True, slots=True)
class Case:
    """A model and how large it is trained.

    Attributes:
        name: What the tables call it.
        batch_size: A batch whose activations take most of the memory.
        quick_batch_size: The same for a quick look, where they do not.
        backends: Where it is trained. Convolutions of JAX on a CPU take minutes.
        batchnorm: What memfit is told of BatchNormalization.
        is_slow: Whether building its graph takes most of the time.
    """

    name: str
    batch_size: int
    quick_batch_size: int
    backends: tuple[str, ...] = ("tensorflow", "torch", "jax")
    batchnorm: str | None = None
    is_slow: bool = False


CASES = (
    Case("conv", 1024, 192, ("tensorflow", "torch"), batchnorm="micro"),
    Case("transformer", 1024, 192, is_slow=True),
    Case("dense", 1_000_000, 100_000),
)


def find_case(name: str) -> Case:
    """Returns the case of that name."""
    return next(case for case in CASES if case.name == name)


def build(name: str) -> Any:
    """Returns a compiled model."""
    makers: dict[str, Callable[[], Any]] = {
        "conv": build_conv,
        "transformer": build_transformer,
        "dense": build_dense,
    }
    return makers[name]()


def build_conv() -> Any:
    """Returns a conv net with BatchNormalization, for small pictures."""
    import keras

    layers = keras.layers
    x = inputs = keras.Input((PIXELS, PIXELS, 3))
    for filters in (16, 32):
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
            x = layers.BatchNormalization()(x)
            x = layers.Activation("relu")(x)
        x = layers.MaxPooling2D()(x)
    x = layers.GlobalAveragePooling2D()(x)
    model = keras.Model(inputs, layers.Dense(CLASSES, activation="softmax")(x))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def build_transformer() -> Any:
    """Returns a small transformer that reads words."""
    import keras

    layers = keras.layers
    inputs = keras.Input((LENGTH,), dtype="int32")
    x = layers.Embedding(WORDS, WIDTH)(inputs)
    for _ in range(DEPTH):
        y = layers.LayerNormalization()(x)
        y = layers.MultiHeadAttention(HEADS, WIDTH // HEADS, dropout=0.1)(y, y)
        x = layers.Add()([x, y])
        y = layers.LayerNormalization()(x)
        y = layers.Dense(4 * WIDTH, activation="gelu")(y)
        y = layers.Dropout(0.1)(y)
        y = layers.Dense(WIDTH)(y)
        x = layers.Add()([x, y])
    x = layers.GlobalAveragePooling1D()(x)
    model = keras.Model(inputs, layers.Dense(CLASSES, activation="softmax")(x))
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def build_dense() -> Any:
    """Returns the model that beginners' questions about memory show."""
    import keras

    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    return model


def make_data(name: str, num_samples: int) -> tuple[Any, Any]:
    """Returns inputs and targets."""
    import numpy as np

    random = np.random.default_rng(0)
    if name == "conv":
        x = random.random((num_samples, PIXELS, PIXELS, 3), dtype="float32")
    elif name == "transformer":
        x = random.integers(0, WORDS, (num_samples, LENGTH), dtype="int32")
    else:
        x = random.random((num_samples, FEATURES), dtype="float32")
    most = 2 if name == "dense" else CLASSES
    return x, random.integers(0, most, (num_samples, 1), dtype="int32")
