"""PyTorch: it keeps no registries that grow."""

import sys
from typing import Any

from memfit.backends.registries import Counted


def is_compiler_loaded() -> bool:
    """Returns whether `torch.compile` is loaded; Keras loads it, for seconds, to clear it."""
    return "torch._dynamo" in sys.modules


def count() -> Counted:
    """Returns nothing: torch keeps no registries that grow."""
    return Counted()


def registered() -> frozenset[str]:
    """Returns nothing: torch keeps nothing for a model that is gone."""
    return frozenset()


def release(names: frozenset[str]) -> None:
    """Gives cached device memory back."""
    torch: Any = sys.modules["torch"]
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
