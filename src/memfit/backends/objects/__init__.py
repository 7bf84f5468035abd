"""What an object of a framework is, and what it keeps.

Inside a training this topic never imports its framework: it is used only once the script has
done so, and nothing it does may initialise a device that the script has not initialised.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memfit.slots import class_bases, class_module, class_name

# The packages whose objects each framework's module describes.
PACKAGES = {"tensorflow": "tensorflow", "jax": "jax", "jaxlib": "jax", "torch": "torch"}

# Classes of tensors that hold values, in any framework.
TENSOR_CLASSES = frozenset({"EagerTensor", "ArrayImpl", "Tensor"})

# A part of an array that keeps this many times its own size alive is called a view.
VIEW_FACTOR = 4


@dataclass(frozen=True, slots=True)
class LiveObject:
    """What one object is to a user who looks for memory.

    Attributes:
        kind: Such as `"tensor"`, `"graph"` (with the record of how it was computed),
            `"function"`, `"dataset"`, `"model"`.
        size_bytes: Memory that it keeps; a view counts the whole buffer behind it.
        buffer_id: The same for objects that share one buffer.
        text: Type and shape, such as `"float32 (128, 10)"`.
    """

    kind: str
    size_bytes: int
    buffer_id: int
    text: str = ""


class Objects(Protocol):
    """What memfit asks of a framework's objects. Modules of this package have this shape."""

    def describe(self, value: Any) -> LiveObject | None:
        """Returns what `value`, an object of this framework, is; `None` if nothing known."""

    def graph_length(self, value: Any) -> int:
        """Returns how many steps the record behind a tensor has; 0 where tensors keep none."""

    def graph_size_bytes(self, values: Sequence[Any]) -> int:
        """Returns the bytes that these records keep together, apart from parameters."""


def backend_of(kind: type) -> str | None:
    """Returns the framework that objects of `kind` belong to; `None` if it is not loaded."""
    package = package_of(kind)
    # memfit's wrapper around a function that JAX compiled is an object of JAX.
    name = "jax" if package == "memfit" else PACKAGES.get(package)
    return name if name in sys.modules else None


def package_of(kind: type) -> str:
    """Returns the package that a class comes from; empty where a class names no module."""
    return class_module(kind).partition(".")[0]


def kind_by_class(kinds: Mapping[str, str], value: object) -> str | None:
    """Returns the kind of `value` by the names of its classes, the nearest first."""
    names = map(class_name, class_bases(type(value)))
    return next((kinds[name] for name in names if name in kinds), None)
