"""The only code that imports TensorFlow, JAX or torch.

A folder is a topic: what memfit needs of a framework for one purpose. Its `__init__` has the
protocol and the values, and a module for each framework implements it. `load` is the only way
to one of these modules.

The active backend is found by one rule. Keras decides: once it is loaded, it is asked. A script
that does not use Keras counts as using the framework that it has loaded. Before any of them is
loaded, the active backend is the one that Keras will choose.
"""

import importlib
import os
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, overload

from memfit.errors import UsageError

if TYPE_CHECKING:
    from memfit.backends.accelerators import Accelerators
    from memfit.backends.devices import Devices
    from memfit.backends.events import Events
    from memfit.backends.feeds import Feeds
    from memfit.backends.first_step import FirstStep
    from memfit.backends.micro_batches import MicroBatchSteps
    from memfit.backends.objects import Objects
    from memfit.backends.proof import ProofSteps
    from memfit.backends.recompute import Recompute
    from memfit.backends.registries import Registries
    from memfit.backends.retry import RetrySteps
    from memfit.backends.segments import Segments
    from memfit.backends.state import NativeState

BACKEND_NAMES = ("tensorflow", "jax", "torch")


@overload
def load(topic: Literal["devices"], name: str | None = None) -> "Devices": ...
@overload
def load(topic: Literal["objects"], name: str | None = None) -> "Objects": ...
@overload
def load(topic: Literal["events"], name: str | None = None) -> "Events": ...
@overload
def load(topic: Literal["registries"], name: str | None = None) -> "Registries": ...
@overload
def load(topic: Literal["accelerators"], name: str | None = None) -> "Accelerators": ...
@overload
def load(topic: Literal["feeds"], name: str | None = None) -> "Feeds": ...
@overload
def load(topic: Literal["first_step"], name: str | None = None) -> "FirstStep": ...
@overload
def load(topic: Literal["micro_batches"], name: str | None = None) -> "MicroBatchSteps": ...
@overload
def load(topic: Literal["segments"], name: str | None = None) -> "Segments": ...
@overload
def load(topic: Literal["retry"], name: str | None = None) -> "RetrySteps": ...
@overload
def load(topic: Literal["recompute"], name: str | None = None) -> "Recompute": ...
@overload
def load(topic: Literal["proof"], name: str | None = None) -> "ProofSteps": ...
@overload
def load(topic: Literal["state"], name: str | None = None) -> "NativeState": ...
def load(topic: str, name: str | None = None) -> Any:
    """Returns the module that implements `topic` for a framework.

    Args:
        topic: A folder of this package.
        name: The framework, one of `BACKEND_NAMES`. Defaults to the active backend.

    Raises:
        UsageError: memfit does not support the framework.
    """
    name = name or active_backend_name() or chosen_backend_name()
    if name not in BACKEND_NAMES:
        raise UsageError(
            f"memfit works with Keras on {', '.join(BACKEND_NAMES)}. "
            f"Received: Keras with the backend {name!r}. Set KERAS_BACKEND to one of these."
        )
    return importlib.import_module(f"memfit.backends.{topic}.{name}")


def loaded_backend_names() -> list[str]:
    """Returns the frameworks that the script has loaded."""
    return [name for name in BACKEND_NAMES if name in sys.modules]


def active_backend_name(modules: Mapping[str, ModuleType] | None = None) -> str | None:
    """Returns the framework that the script uses: Keras's own, else the first one loaded.

    Args:
        modules: Loaded modules by name. Defaults to `sys.modules`.

    Returns:
        One of `BACKEND_NAMES`; `None` if none is loaded yet, or Keras uses another.
    """
    modules = sys.modules if modules is None else modules
    name = _ask_keras(modules)
    if name is not None:
        return name if name in BACKEND_NAMES else None
    return next((name for name in BACKEND_NAMES if name in modules), None)


def chosen_backend_name() -> str:
    """Returns the framework that Keras uses or, if it is not loaded yet, will use.

    Keras decides by `KERAS_BACKEND`, then by its own file, and else uses TensorFlow. This is for
    settings that must be made before Keras is loaded.
    """
    name = _ask_keras(sys.modules)
    if name is not None:
        return name
    import json
    from pathlib import Path

    home = os.environ.get("KERAS_HOME") or Path("~/.keras").expanduser()
    try:
        written = json.loads(Path(home, "keras.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        written = {}
    return os.environ.get("KERAS_BACKEND") or str(written.get("backend", "tensorflow"))


def _ask_keras(modules: Mapping[str, ModuleType]) -> str | None:
    config = getattr(modules.get("keras"), "config", None)
    ask = getattr(config, "backend", None)
    return str(ask()) if ask is not None else None  # absent while Keras is being imported
