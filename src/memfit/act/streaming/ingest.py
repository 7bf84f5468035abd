"""`memfit.ingest`."""

from typing import Any


def ingest(source: Any, folder: Any) -> None:
    """TBD."""
