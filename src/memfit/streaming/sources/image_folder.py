"""A folder of pictures in a subfolder for each class, decoded once in threads.

`x` is the picture, one byte a colour; `y` is the number of its class, in the order of the names.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from memfit.errors import DataChangedError, DataError
from memfit.streaming.data.source import Array, Source, Values
from memfit.streaming.sources.pictures import ENDINGS, Pictures, in_chunks, map_in_threads
from memfit.streaming.store.cache_folder import DiskRoom
from memfit.streaming.store.spool import spool

# How many are decoded together, and what they take at most.
_AT_A_TIME = 64
_CHUNK_BYTES = 1 << 22
# Of many files, so many are looked at before an epoch.
_MOST_CHECKED = 1000
_LABEL = np.dtype(np.int64)


class Folder:
    """The pictures of a folder.

    Args:
        folder: Where the subfolders are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.classes = tuple(sorted(one.name for one in _subfolders(folder)))
        self.paths: list[Path] = []
        self.labels: list[int] = []
        for label, name in enumerate(self.classes):
            found = sorted(_find(folder / name))
            if not found:
                raise DataError(
                    f"{folder / name} holds no picture. Expected files that end in "
                    f"{', '.join(ENDINGS)} for each class. Remove the folder, or fill it."
                )
            self.paths += found
            self.labels += [label] * len(found)
        self._checked = self.paths[:: -(-len(self.paths) // _MOST_CHECKED)]
        self._stamps = [_stamp(one) for one in self._checked]

    def make_key(self, size: tuple[int, int] | None) -> str:
        """Returns another text for other files, or another size."""
        digest = hashlib.sha256(repr((str(self.folder.absolute()), size)).encode())
        for path in self.paths:
            digest.update(f"{path.relative_to(self.folder)} {_stamp(path)}".encode())
        return f"images {digest.hexdigest()}"

    def check(self) -> None:
        """Raises if a picture was changed."""
        for path, stamp in zip(self._checked, self._stamps, strict=True):
            if _stamp(path) != stamp:
                raise DataChangedError(
                    f"{path} has changed since the stream was made. Make a new stream, and do not "
                    "write to pictures that a training reads."
                )

    def read(self, pictures: Pictures) -> Iterator[Mapping[str, Values]]:
        """Gives pictures and classes, some at a time."""
        first = pictures.decode(str(self.paths[0]), self.paths[0].read_bytes())
        number = max(1, min(_AT_A_TIME, _CHUNK_BYTES // first.nbytes))
        height, width, _ = first.shape
        DiskRoom(
            f"{len(self.paths)} pictures of {height} x {width}", "give a smaller image_size"
        ).check(len(self.paths) * (first.nbytes + _LABEL.itemsize))

        def decode(path: Path) -> Array:
            return pictures.decode(str(path), path.read_bytes())

        at = 0
        for found in map_in_threads(decode, in_chunks(self.paths, number)):
            labels = self.labels[at : at + len(found)]
            at += len(found)
            yield {"x": np.stack(found), "y": np.array(labels, _LABEL)}


def accepts_folder(folder: Path) -> bool:
    """Whether a subfolder holds a picture."""
    return any(next(_find(one), None) is not None for one in _subfolders(folder))


def open_folder(folder: Path, image_size: tuple[int, int] | None = None) -> Source:
    """Returns the pictures of a folder.

    Args:
        folder: Where the subfolders are.
        image_size: Height and width of all; `None` if they have the same size already.

    Raises:
        DataError: A picture cannot be read, or they differ in size and no size is given.
    """
    pictures, found = Pictures(image_size), Folder(folder)
    size = None if image_size is None else (int(image_size[0]), int(image_size[1]))
    return spool(
        found.read(pictures),
        found.make_key(size),
        total=len(found.paths),
        name=folder.name,
        check=found.check,
        categories={"y": found.classes},
    )


def _subfolders(folder: Path) -> Iterator[Path]:
    return (one for one in folder.iterdir() if one.is_dir() and not one.name.startswith("."))


def _find(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        for name in names:
            if name.lower().endswith(ENDINGS) and not name.startswith("."):
                yield Path(root) / name


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns
