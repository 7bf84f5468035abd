"""Entries as lines of JSON and back: what has its default is left out, what is unknown ignored."""

import dataclasses
import functools
import json
import types
import typing
from typing import Any

from memfit.record.evidence import (
    Allocated,
    Buffer,
    Called,
    End,
    Entry,
    Exit,
    Header,
    Hinted,
    Holding,
    Loaded,
    Look,
    Made,
    Mark,
    Retraced,
    Sample,
    Software,
    Trial,
    Trouble,
)

_KINDS: dict[str, type[Entry]] = {
    "header": Header,
    "software": Software,
    "sample": Sample,
    "mark": Mark,
    "holding": Holding,
    "retraced": Retraced,
    "look": Look,
    "made": Made,
    "buffer": Buffer,
    "loaded": Loaded,
    "trial": Trial,
    "allocated": Allocated,
    "called": Called,
    "hinted": Hinted,
    "trouble": Trouble,
    "end": End,
    "exit": Exit,
}
_NAMES = {entry_class: kind for kind, entry_class in _KINDS.items()}


def encode(entry: Entry) -> bytes:
    """Returns `entry` as one line, with its line end."""
    fields = {"kind": _NAMES[type(entry)], **_to_plain(entry)}
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> Entry | None:
    """Returns the entry of `line`, or `None` if it is of a kind that a later version added.

    Raises:
        ValueError: If the line is damaged.
    """
    try:
        fields = json.loads(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(fields, dict) or not isinstance(fields.get("kind"), str):
        raise ValueError("not an entry")
    entry_class = _KINDS.get(fields["kind"])
    if entry_class is None:
        return None
    try:
        entry: Entry = _from_plain(entry_class, fields)
    except (TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error
    return entry


def _to_plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        entry_class: Any = type(value)
        pairs = ((name, getattr(value, name), default) for name, default in _fields(entry_class))
        return {name: _to_plain(inner) for name, inner, default in pairs if inner != default}
    if isinstance(value, tuple):
        return [_to_plain(inner) for inner in value]
    return value


def _from_plain(hint: Any, value: Any) -> Any:
    if isinstance(hint, types.UnionType):
        if value is None:
            return None
        return _from_plain(next(arm for arm in hint.__args__ if arm is not type(None)), value)
    if dataclasses.is_dataclass(hint):
        entry_class: Any = hint
        known = _hints(entry_class)
        return entry_class(
            **{
                name: _from_plain(known[name], inner)
                for name, inner in value.items()
                if name in known
            }
        )
    if typing.get_origin(hint) is tuple:
        return tuple(_from_plain(hint.__args__[0], inner) for inner in value)
    if hint in (int, float) and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise TypeError(f"expected a number, received {value!r}")
    return value


@functools.cache
def _fields(entry_class: Any) -> list[tuple[str, Any]]:
    """Names and defaults; a field without a default has one that nothing equals."""
    return [(field.name, field.default) for field in dataclasses.fields(entry_class)]


@functools.cache
def _hints(entry_class: Any) -> dict[str, Any]:
    return typing.get_type_hints(entry_class)
