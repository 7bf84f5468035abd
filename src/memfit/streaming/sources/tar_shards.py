"""Shards in the manner of WebDataset: tar files, in which files with one name are a sample.

`0001.x.npy` and `0001.y.cls` are columns `x` and `y` of sample `0001`; of `0001.jpg` and `0001.cls`
the columns are `jpg` and `cls`. Files are read in memory: none is ever written under its name.
"""

import io
import itertools
import json
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np

from memfit.errors import DataError
from memfit.streaming.data.ragged import Ragged
from memfit.streaming.data.source import Array, Source, Values
from memfit.streaming.files.local import DataFile
from memfit.streaming.sources.pictures import ENDINGS, Pictures, map_in_threads
from memfit.streaming.store.spool import make_key, spool

_MOST_SAMPLES = 256
_CHUNK_BYTES = 1 << 22
# The name of a column, and the name and contents of its file.
Sample = dict[str, tuple[str, bytes]]


def open_file(path: Path, image_size: tuple[int, int] | None = None) -> Source:
    """Returns the samples of a shard.

    Args:
        path: The shard.
        image_size: Height and width of pictures; `None` if they have the same size already.

    Raises:
        DataError: A member cannot be read, is not of a known kind or has a name that leads away.
    """
    file = DataFile(path)
    size = None if image_size is None else tuple(image_size)
    return spool(
        Shard(path, image_size).read(),
        make_key([file], "tar", size),
        name=path.name,
        check=file.check,
    )


class Shard:
    """A shard that is read from front to back.

    Args:
        path: The file.
        image_size: Height and width of pictures.
    """

    def __init__(self, path: Path, image_size: tuple[int, int] | None) -> None:
        self._path = path
        self._image_size = image_size
        self._pictures: Pictures | None = None
        self._ragged: frozenset[str] | None = None

    def read(self) -> Iterator[Mapping[str, Values]]:
        """Gives the samples, some at a time."""
        try:
            for found in map_in_threads(self._decode, _chunk(self._find_samples())):
                yield self._stack(found)
        except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
            raise DataError(
                f"{self._path} is not a tar file that can be read: {error}. It may be truncated: "
                "write or copy it again."
            ) from error

    def _find_samples(self) -> Iterator[Sample]:
        members = (_split(name, data) for name, data in self._read_members())
        names: list[str] | None = None
        for _, group in itertools.groupby(members, key=lambda one: one[0]):
            sample: Sample = {}
            for _, column, name, data in group:
                if column in sample:
                    self._refuse(name, f"is a duplicate: column {column!r} has {sample[column][0]}")
                sample[column] = (name, data)
            names = names or sorted(sample)
            if sorted(sample) != names:
                self._refuse(
                    next(iter(sample.values()))[0],
                    f"belongs to a sample with {', '.join(sorted(sample))}; the first has "
                    f"{', '.join(names)}",
                )
            yield {column: sample[column] for column in names}

    def _read_members(self) -> Iterator[tuple[str, bytes]]:
        with tarfile.open(self._path, "r|*") as archive:
            for member in archive:
                self._check_name(member.name)
                if member.isdir():
                    continue
                file = archive.extractfile(member) if member.isreg() else None
                if file is None:
                    self._refuse(
                        member.name, "is not a regular file: links and devices are not read"
                    )
                    continue
                data = file.read()
                if len(data) != member.size:
                    self._refuse(member.name, f"is truncated: {len(data)} of {member.size} bytes")
                yield member.name, data

    def _check_name(self, name: str) -> None:
        is_away = ".." in PurePosixPath(name).parts or ".." in PureWindowsPath(name).parts
        if is_away or name.startswith(("/", "\\")) or PureWindowsPath(name).drive:
            self._refuse(name, "has a name that leads out of the archive, which is not trusted")

    def _decode(self, sample: Sample) -> dict[str, Array]:
        return {column: self._decode_one(name, data) for column, (name, data) in sample.items()}

    def _decode_one(self, name: str, data: bytes) -> Array:
        ending = "." + name.lower().rpartition(".")[2]
        if ending in ENDINGS:
            return self._get_pictures().decode(f"{self._path}[{name}]", data)
        if ending not in _DECODERS:
            self._refuse(
                name,
                f"is of an unknown kind. Expected {', '.join((*_DECODERS, *ENDINGS))}",
            )
        try:
            return _DECODERS[ending](data)
        except (ValueError, EOFError, TypeError) as error:
            self._refuse(name, f"cannot be read: {error}")
            raise

    def _get_pictures(self) -> Pictures:
        if self._pictures is None:
            self._pictures = Pictures(self._image_size)
        return self._pictures

    def _stack(self, samples: list[dict[str, Array]]) -> dict[str, Values]:
        """Arrays that differ in length among the first samples are sequences from then on."""
        if self._ragged is None:
            self._ragged = frozenset(
                name for name in samples[0] if len({one[name].shape for one in samples}) > 1
            )
        found: dict[str, Values] = {}
        for name in samples[0]:
            arrays = [one[name] for one in samples]
            try:
                found[name] = _join(arrays) if name in self._ragged else np.stack(arrays)
            except ValueError:
                shapes = sorted({one.shape for one in arrays})
                raise DataError(
                    f"Column {name!r} of {self._path} has rows of different shapes: "
                    f"{', '.join(map(str, shapes[:3]))}. Expected one shape, or one that differs "
                    f"in its first number among the first {_MOST_SAMPLES} samples."
                ) from None
        return found

    def _refuse(self, name: str, reason: str) -> None:
        raise DataError(f"{self._path}[{name}] {reason}. Leave it out, or write the shard again.")


def _split(name: str, data: bytes) -> tuple[str, str, str, bytes]:
    """The sample, the column, the name and the contents of a member."""
    folder, _, base = name.rpartition("/")
    stem, _, kind = base.partition(".")
    column = kind.rpartition(".")[0] or kind or base
    return f"{folder}/{stem}", column.lower(), name, data


def _chunk(samples: Iterator[Sample]) -> Iterator[list[Sample]]:
    chunk: list[Sample] = []
    size_bytes = 0
    for sample in samples:
        chunk.append(sample)
        size_bytes += sum(len(data) for _, data in sample.values())
        if len(chunk) == _MOST_SAMPLES or size_bytes >= _CHUNK_BYTES:
            yield chunk
            chunk, size_bytes = [], 0
    if chunk:
        yield chunk


def _join(arrays: list[Array]) -> Ragged:
    if any(one.ndim == 0 for one in arrays):
        raise ValueError("a number among sequences")
    offsets = np.concatenate(([0], np.cumsum([len(one) for one in arrays])))
    return Ragged(np.concatenate(arrays), offsets)


def _decode_npy(data: bytes) -> Array:
    # A pickle can run any code: it is not read.
    found: Array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    return found


def _decode_json(data: bytes) -> Array:
    found = np.array(json.loads(data))
    if found.dtype.kind not in "biuf":
        raise ValueError("expected a number, or lists of numbers")
    return found


_DECODERS: dict[str, Callable[[bytes], Array]] = {
    ".npy": _decode_npy,
    ".cls": lambda data: np.array(int(data), np.int64),
    ".json": _decode_json,
    ".txt": lambda data: np.array(data.decode()),
}
