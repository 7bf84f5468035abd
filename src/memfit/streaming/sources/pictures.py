"""Pictures as arrays of one size, and work on many of them in threads, in order."""

import io
import itertools
import os
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from memfit.errors import DataError, UsageError
from memfit.streaming.data.source import Array
from memfit.streaming.files.optional_packages import load

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
# Decoding leaves Python's lock; more threads than cores hide the reads.
_THREADS = 2 * (os.cpu_count() or 1)
# Of what is quicker than this, most is Python code, and threads only wait for one another.
_QUICK_S = 0.0004

Item = TypeVar("Item")
Result = TypeVar("Result")


class Pictures:
    """Decodes pictures to `(height, width, 3)`, one byte a colour.

    Args:
        size: Height and width; `None` if all pictures have the same size already.

    Raises:
        UsageError: It is not a size.
        MissingPackageError: Pillow is not installed.
    """

    def __init__(self, size: tuple[int, int] | None) -> None:
        if size is not None:
            _check_size(size)
        self._size = size
        self._first: tuple[str, tuple[int, int]] | None = None
        self._image: Any = load("PIL.Image", "Pictures", "images")

    def decode(self, name: str, data: bytes) -> Array:
        """Returns a picture.

        Args:
            name: What to call it in messages.
            data: The contents of its file.

        Raises:
            DataError: It cannot be read, or has another size than the others.
        """
        try:
            with self._image.open(io.BytesIO(data)) as image:
                found = self._read(name, image)
        except (OSError, SyntaxError, ValueError, struct.error, self._bomb) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(
                f"{name} is a picture that cannot be read: {error}. Write it again, or leave it "
                "out."
            ) from error
        return found

    @property
    def _bomb(self) -> type[Exception]:
        return self._image.DecompressionBombError  # type: ignore[no-any-return]  # Pillow's

    def _read(self, name: str, image: Any) -> Array:
        if self._size is None:
            self._check_same(name, (image.height, image.width))
            return _to_array(image.convert("RGB"))
        height, width = self._size
        if image.width >= 2 * width and image.height >= 2 * height:
            # A large JPEG is decoded at a half, a quarter or an eighth of its size.
            image.draft("RGB", (width, height))
        if image.mode != "RGB":
            image = image.convert("RGB")
        if image.size != (width, height):
            image = image.resize((width, height), self._image.Resampling.BILINEAR)
        return _to_array(image)

    def _check_same(self, name: str, size: tuple[int, int]) -> None:
        self._first = self._first or (name, size)
        first, expected = self._first
        if size != expected:
            raise DataError(
                f"The pictures differ in size: {first} is {expected[0]} x {expected[1]}, {name} is "
                f"{size[0]} x {size[1]} (height x width). Give the size to resize them to, such as "
                "image_size=(64, 64)."
            )


def map_in_threads(
    function: Callable[[Item], Result], chunks: Iterable[list[Item]]
) -> Iterator[list[Result]]:
    """Gives what a function makes of each chunk; while one is used, the next is made.

    The first are made by one thread, which tells whether more would help.
    """
    num_threads = 1

    def make(some: list[Item]) -> list[Result]:
        nonlocal num_threads
        begun_s = time.perf_counter()
        made = [function(one) for one in some]
        if time.perf_counter() - begun_s > _QUICK_S * len(some):
            num_threads = _THREADS
        return made

    with _make_pool(1) as single, _make_pool(_THREADS) as many:
        waiting: Iterator[list[Result]] | None = None
        for chunk in chunks:
            # A part for each thread: to hand over every single one takes as long as to decode it.
            parts = in_chunks(chunk, -(-len(chunk) // num_threads))
            begun = (single if num_threads == 1 else many).map(make, parts)
            if waiting is not None:
                yield list(itertools.chain.from_iterable(waiting))
            waiting = begun
        if waiting is not None:
            yield list(itertools.chain.from_iterable(waiting))


def _make_pool(num_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(num_threads, thread_name_prefix="memfit-decode")


def in_chunks(values: Iterable[Item], number: int) -> Iterator[list[Item]]:
    """Gives values, so many at a time."""
    left = iter(values)
    while chunk := list(itertools.islice(left, number)):
        yield chunk


def _to_array(image: Any) -> Array:
    # What `np.asarray` does with a picture, in half the time.
    return np.frombuffer(image.tobytes(), np.uint8).reshape(image.height, image.width, -1)


def _check_size(size: Any) -> None:
    is_pair = isinstance(size, tuple | list) and len(size) == 2
    if not is_pair or not all(type(one) is int and one > 0 for one in size):
        raise UsageError(
            f"image_size must be (height, width) in whole numbers, 1 or more. Received: {size!r}."
        )
