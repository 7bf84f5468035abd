"""What was found out about a training, kept for the next time; a file that may be deleted."""

import contextlib
import hashlib
import json
import os
import platform
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memfit.backends import active_backend_name
from memfit.keras_private.layers import all_layers

_FILE = "micro_batch_sizes.json"
_MOST_KEPT = 500


@dataclass(frozen=True, slots=True)
class KnownSize:
    """The size of a micro-batch that one training found.

    Attributes:
        key: Tells trainings apart: model, shapes, budget, backend, versions and machine.
        size: What was found; `None` if it is new.
    """

    key: str
    size: int | None

    @classmethod
    def of(cls, model: Any, batch: Any, budget_bytes: int, request: Any) -> "KnownSize":
        """Returns what is known of this training."""
        import keras

        shapes = [
            (leaf.shape, str(leaf.dtype)) for leaf in keras.tree.flatten(batch) if leaf is not None
        ]
        known = (
            [(one.path, one.shape, one.dtype) for one in model.variables],
            [type(layer).__name__ for layer in all_layers(model)],
            type(model.optimizer).__name__,
            shapes,
            (budget_bytes, request.budget.place, request.allow, request.batchnorm),
            (active_backend_name(), keras.__version__, platform.node(), os.cpu_count()),
        )
        key = hashlib.sha256(repr(known).encode()).hexdigest()[:24]
        size = _read().get(key)
        return cls(key, size if isinstance(size, int) and size > 0 else None)

    def keep(self, size: int) -> None:
        """Writes the size down; a place that cannot be written to is no reason to stop."""
        if size == self.size:
            return
        known = {**_read(), self.key: size}
        path = _path()
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                "w", dir=path.parent, prefix=_FILE, delete=False
            ) as file:
                json.dump(dict(list(known.items())[-_MOST_KEPT:]), file)
            Path(file.name).replace(path)


def _path() -> Path:
    folder = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(folder) / "memfit" / _FILE


def _read() -> dict[str, Any]:
    try:
        known = json.loads(_path().read_text())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
