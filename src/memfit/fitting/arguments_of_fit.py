"""What a user gives to `fit`: by name, checked, and with nothing of it read."""

import inspect
import threading
from collections.abc import Callable, Iterator
from types import GeneratorType
from typing import Any

from memfit.arguments import check_whole_number
from memfit.errors import UsageError
from memfit.fitting.batch import count_bytes, count_samples, is_arrays, unpack
from memfit.keras_private.trainer import find_fit

_TRAINED = ("x", "y", "sample_weight")


def name_arguments(
    fit: Callable[..., Any], model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """Returns the arguments of `fit` by name.

    Args:
        fit: What they are for; takes the model first.
        model: The model.
        args: What it is called with.
        kwargs: The same, by name.
    """
    bound = _bind(fit, model, args, kwargs)
    kinds = {name: one.kind for name, one in bound.signature.parameters.items()}
    arguments = dict(list(bound.arguments.items())[1:])
    for name in [name for name in arguments if kinds[name] is inspect.Parameter.VAR_KEYWORD]:
        arguments.update(arguments.pop(name))
    return arguments


def _bind(
    fit: Callable[..., Any], model: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> inspect.BoundArguments:
    """By the names of Keras's own `fit`; by those of `fit` if it takes something else."""
    try:
        return inspect.signature(find_fit(model)).bind(model, *args, **kwargs)
    except TypeError:
        return inspect.signature(fit).bind(model, *args, **kwargs)


def check_batch_size(arguments: dict[str, Any]) -> None:
    """Raises if data is arrays and nobody says how they are cut into batches."""
    if not is_arrays(arguments.get("x")):
        return
    if arguments.get("batch_size") is None:
        raise UsageError(
            "batch_size is missing. Received: arrays and no batch_size. Give the batch size that "
            "you want to train with, such as batch_size=256: memfit keeps it."
        )
    check_whole_number("batch_size", arguments["batch_size"])


def count_trained_bytes(arguments: dict[str, Any]) -> int:
    """Returns the size of the arrays that are trained on; 0 where they are not arrays."""
    return count_bytes([arguments.get(name) for name in _TRAINED])


def count_validation_bytes(arguments: dict[str, Any]) -> int:
    """Returns the size of the arrays that `fit` has not yet copied: those for validation."""
    given = arguments.get("validation_data")
    if given is not None:
        return count_bytes(given)
    share = arguments.get("validation_split") or 0.0
    return int(share * count_trained_bytes(arguments))


def is_generator(x: Any) -> bool:
    """Returns whether `x` is a generator, as Keras tells it."""
    return isinstance(x, GeneratorType)


def watch_generator(generator: Any, is_free: threading.Event) -> Iterator[Any]:
    """Gives the same batches; one may not be larger than the first, which the budget is for.

    Args:
        generator: The user's own.
        is_free: It is asked for no batch before this is set, as a pipeline that reads ahead would.
    """
    most = None
    while True:
        is_free.wait()
        try:
            item = next(generator)
        except StopIteration:
            return
        number = count_samples(unpack(item))
        most = number if most is None else most
        if number > most:
            raise UsageError(
                f"The generator gave a batch of {number} samples; the first had {most}, and the "
                "budget was planned for that. Give the largest batch first, or batches of one size."
            )
        yield item
