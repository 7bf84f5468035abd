"""Entries as lines of JSON: how one is written, read and checked against its schema."""

import errno
import json
import os
import re
from pathlib import Path
from typing import Any, Never, Union

import msgspec

from memfit.messages import printable
from memfit.record.evidence import Evidence
from memfit.record.samples import Entry

SCHEMAS = tuple(
    schema
    for schema in (*Entry.__subclasses__(), *Evidence.__subclasses__())
    if schema is not Evidence
)
_LINE: Any = Union[SCHEMAS]  # noqa: UP007  # made from a tuple
_KINDS = {schema.__struct_config__.tag for schema in SCHEMAS}
# Numbers that may be no size or time of any machine; they are looked at one by one.
_ODD_NUMBER = re.compile(rb"\d{16}|\d[eE][+-]?\d{2}")
# 9 petabytes, or 285 million years; sums and ratios of such numbers stay finite.
_LARGEST = 2**53
_SMALLEST = 1e-15
# Scripts open files from 3 on.
_HIGH = 700
# Text that may control a terminal, as JSON or in UTF-8; it is spelt out.
_ODD_TEXT = re.compile(
    rb"\\[bfr]|\\u00[0-9a-fA-F]{2}|\\u20[0-6]|\x7f|\xc2[\x80-\x9f]"
    rb"|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]"
)


class _AnyLine(msgspec.Struct):
    """What every line has, also of a kind that a later version added."""

    kind: str


def encode(entry: Entry) -> bytes:
    """Returns `entry` as one line, with its line end."""
    try:
        return _encoder.encode(entry) + b"\n"
    except UnicodeEncodeError:  # a file name that is not UTF-8
        plain = msgspec.to_builtins(entry, enc_hook=_to_builtin)
        return json.dumps(plain, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Entry | None:
    """Returns the entry of `line`, or `None` if it is of a kind that a later version added.

    Raises:
        ValueError: If the line is damaged or does not match the schema of its kind.
    """
    try:
        if _ODD_NUMBER.search(line) or _ODD_TEXT.search(line) or b"\\ud" in line:
            return _decode_plain(line)
        return _decode(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _decode(line: bytes) -> Entry | None:
    try:
        entry: Entry = _decoder.decode(line)
    except msgspec.ValidationError:
        if msgspec.json.decode(line, type=_AnyLine).kind in _KINDS:
            raise
        return None
    return entry


def _decode_plain(line: bytes) -> Entry | None:
    """Decodes names that are not UTF-8, and checks numbers and texts one by one."""
    plain = _spell_out(
        json.loads(
            line, parse_int=_parse_int, parse_float=_parse_float, parse_constant=_refuse_constant
        )
    )
    if msgspec.convert(plain, _AnyLine).kind not in _KINDS:
        return None
    entry: Entry = msgspec.convert(plain, _LINE)
    return entry


def _spell_out(value: Any) -> Any:
    """Returns what JSON gave, with no text in it that controls a terminal."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_spell_out(one) for one in value]
    if isinstance(value, dict):
        return {printable(name): _spell_out(one) for name, one in value.items()}
    return value


def _parse_int(text: str) -> int:
    number = int(text)
    if abs(number) > _LARGEST:
        raise ValueError("a number is too large")
    return number


def _parse_float(text: str) -> float:
    number = float(text)
    if not abs(number) <= _LARGEST:
        raise ValueError("a number is too large")
    return number if abs(number) > _SMALLEST else 0.0


def _refuse_constant(text: str) -> Never:
    raise ValueError(f"{text} is not a number")


def _to_builtin(value: Any) -> Any:
    """Returns a string or number of a class of its own as a built-in; runs no code of the class."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    raise NotImplementedError(f"{type(value).__name__} cannot be written")


_encoder = msgspec.json.Encoder(enc_hook=_to_builtin)
_decoder = msgspec.json.Decoder(_LINE)


class Writer:
    """Appends lines to one file, each with one write of its own.

    Nothing is buffered in the process, so `kill -9` loses nothing. A failed write (disk
    full, folder gone) raises nothing: it is kept in `error`, later lines are tried again.

    A script may close all descriptors and open its own files under their numbers. So before each
    write the descriptor is asked which file it is; where that is another, the file is opened again.

    Args:
        path: The file; it must not exist.

    Raises:
        OSError: If the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._descriptor: int | None = _open(path, os.O_CREAT | os.O_EXCL)
        self._identity = _identify(self._descriptor)
        self._is_line_open = False
        self.error: OSError | None = None

    def append(self, entry: Entry) -> None:
        """Writes `entry`; a failure is kept in `error`."""
        if self._descriptor is None:
            return
        line = encode(entry)
        if self._is_line_open:  # a write was cut short: end that line first
            line = b"\n" + line
        try:
            written = os.write(self._find_descriptor(), line)
        except OSError as error:
            self.error = error
        else:
            self._is_line_open = written < len(line)

    def close(self) -> None:
        """Closes the file; later entries are dropped."""
        if self._descriptor is not None and _identify(self._descriptor) == self._identity:
            os.close(self._descriptor)
        self._descriptor = None

    def _find_descriptor(self) -> int:
        """Returns a descriptor of the file; opens it again if the script has closed it."""
        if self._descriptor is None or _identify(self._descriptor) != self._identity:
            self._descriptor = _open(self._path, getattr(os, "O_NOFOLLOW", 0))
        if self._identity is None or _identify(self._descriptor) != self._identity:
            raise OSError(errno.ESTALE, "the recording was exchanged for another file")
        return self._descriptor


def _open(path: Path, flags: int) -> int:
    """Opens a file to append to, under a high number, where scripts look for none."""
    flags |= os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        import fcntl

        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    except (ImportError, OSError):  # not on Windows, or so many are not allowed
        return descriptor
    os.close(descriptor)
    return high


def _identify(descriptor: int) -> tuple[int, int] | None:
    """Which file a descriptor is; `None` if it is closed."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status.st_dev, status.st_ino
