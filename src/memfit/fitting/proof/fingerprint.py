"""What tells models apart that different code built: configs, and code of classes and functions.

Names that Keras gives by counting, and weights, are left out. So is the optimizer: a proof looks at
the gradients that it is given. Where something cannot be told, a model has no fingerprint.
"""

import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from memfit.fitting.proof.code_content import CodeContent
from memfit.keras_private.layers import all_layers
from memfit.keras_private.losses import compiled_with

_COUNTED = re.compile(r"_\d+$")


def fingerprint(model: Any) -> str | None:
    """Returns a text that models share that the same code built; `None` if it cannot be told."""
    import keras

    layers = all_layers(model)
    content = CodeContent(layers)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of lambdas, which are not to be loaded again
            content.add(_without_counts(keras.saving.serialize_keras_object(model)))
            for layer in layers:
                content.add_object(layer)
            content.add(_without(compiled_with(model), "optimizer"))
            content.add([keras.version(), keras.backend.backend(), sys.version])
    except Exception:  # noqa: BLE001  a config is code of the user's
        return None
    return content.digest()


def _without_counts(config: Any) -> Any:
    """The config with places instead of names such as `dense_7`, and nothing that was compiled."""
    names = {name: f"#{place}" for place, name in enumerate(dict.fromkeys(_find_counted(config)))}

    def rename(value: Any) -> Any:
        if isinstance(value, Mapping):
            kept = _without(value, "compile_config")
            return {rename(key): rename(one) for key, one in kept.items()}
        if isinstance(value, list | tuple):
            return [rename(one) for one in value]
        return names.get(value, value) if isinstance(value, str) else value

    return rename(config)


def _find_counted(config: Any) -> Iterator[str]:
    """Gives the names that Keras made of the name of a class."""
    if isinstance(config, Mapping):
        inner = config.get("config")
        name = inner.get("name") if isinstance(inner, Mapping) else None
        kind = str(config.get("class_name")).lower().replace("_", "")
        if isinstance(name, str) and _COUNTED.sub("", name).replace("_", "") == kind:
            yield name
        for value in config.values():
            yield from _find_counted(value)
    elif isinstance(config, list | tuple):
        for value in config:
            yield from _find_counted(value)


def _without(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: one for key, one in config.items() if key != name}
