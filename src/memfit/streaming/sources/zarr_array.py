"""Arrays of Zarr that a script has opened: read a row of chunks at a time, and not whole."""

import sys
from pathlib import Path
from typing import Any

from memfit.streaming.files.npy import NAME
from memfit.streaming.sources.chunked import check_rows
from memfit.streaming.sources.zarr import ZarrArrays, ZarrFolder, check_kind


def accepts(value: Any) -> bool:
    """Whether this is an array of Zarr's with rows."""
    zarr = sys.modules.get("zarr")
    return zarr is not None and isinstance(value, zarr.Array) and bool(value.shape)


def open_object(value: Any) -> ZarrArrays:
    """Returns the rows of an array.

    Raises:
        DataError: It has no rows, or holds what cannot be streamed.
    """
    root = getattr(value.store, "root", None)
    where = str(value.store_path)
    check_rows(where, {NAME: value.shape})
    check_kind(where, NAME, value.dtype)
    if isinstance(root, Path) and (root / value.path).is_dir():
        return ZarrFolder(root / value.path, {NAME: value})
    return ZarrArrays(where, {NAME: value})
