"""Checks of what a user gives to a function of memfit; each raises a `UsageError` in Keras's words.

```
`size` must be a whole number, 1 or more. Received: size=0.
```
"""

import numbers
from typing import Any

from memfit.errors import UsageError
from memfit.units import parse_size


def check_whole_number(name: str, value: object, *, least: int = 1) -> int:
    """Returns an argument that must be a whole number, of NumPy too, as an `int`.

    Args:
        name: What the argument is called.
        value: What was given.
        least: The smallest number that is allowed.

    Raises:
        UsageError: It is not a whole number, or too small.

    Example:
    >>> check_whole_number("size", 32)
    32
    """
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole or int(value) < least:  # type: ignore[call-overload]  # it is a number here
        raise UsageError(
            f"`{name}` must be a whole number, {least} or more. Received: {name}={value!r}."
        )
    return int(value)  # type: ignore[call-overload,no-any-return]


def check_size_text(name: str, value: object) -> int:
    """Returns the bytes of an argument that must be a size with a unit, such as `"4GB"`.

    Args:
        name: What the argument is called.
        value: What was given.

    Raises:
        UsageError: It is not text.
        InvalidSizeError: It is text that names no size.

    Example:
    >>> check_size_text("budget", "4GB")
    4000000000
    """
    if not isinstance(value, str):
        raise UsageError(
            f"`{name}` must be text with a unit. Received: {name}={value!r}. "
            'Write it like "4GB" or "512MiB".'
        )
    return parse_size(value)


def check_keras_model(model: Any) -> None:
    """Raises if `model` is not a Keras model.

    Raises:
        UsageError: It is something else.
    """
    import keras

    if not isinstance(model, keras.Model):
        raise UsageError(
            "`model` must be a Keras model: keras.Model, keras.Sequential or a subclass. "
            f"Received: model={_shorten(model)} (of type {type(model).__name__})."
        )


def check_compiled(model: Any) -> None:
    """Raises if `model` is not a compiled Keras model.

    Raises:
        UsageError: It is something else, or it is not compiled.
    """
    check_keras_model(model)
    if not model.compiled:
        raise UsageError(
            "`model` must be compiled. "
            f"Received: the model {model.name!r}, which is not compiled. "
            "Call model.compile(optimizer, loss) first."
        )


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
