"""Sizes and durations in words, as users read and write them.

Everywhere else in the package a size is an `int` and its name ends in `_bytes`;
a duration is a `float` and its name ends in `_s`.
"""

import re
from decimal import Decimal

from memfit.errors import InvalidSizeError

_UNITS = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_BY_LOWER_CASE = {unit.lower(): size for unit, size in _UNITS.items()}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")


def parse_size(text: str) -> int:
    """Returns the number of bytes that `text` names.

    `GB` is 10**9 bytes and `GiB` is 2**30; upper and lower case mean the same;
    a unit is never guessed.

    Args:
        text: A number and a unit, such as `"512 MiB"`.

    Raises:
        InvalidSizeError: If the number or the unit cannot be read, or the size is zero.

    Example:
    >>> parse_size("1.5 KiB")
    1536
    """
    match = _SIZE.fullmatch(text)
    unit_bytes = _BY_LOWER_CASE.get(match[2].lower()) if match else None
    size_bytes = int(Decimal(match[1]) * unit_bytes) if match and unit_bytes else 0
    if size_bytes <= 0:
        raise InvalidSizeError(text, units=list(_UNITS))
    return size_bytes


def format_size(size_bytes: float) -> str:
    """Returns `size_bytes` as users write it: three figures and a decimal unit.

    Example:
    >>> format_size(1_310_000_000)
    '1.31 GB'
    """
    for unit in ("TB", "GB", "MB", "kB"):
        value = size_bytes / _UNITS[unit]
        if abs(value) >= 0.9995:
            return f"{_three_figures(value)} {unit}"
    return f"{size_bytes:.0f} B"


def format_change(size_bytes: float) -> str:
    """Returns a difference of sizes with its sign.

    Example:
    >>> format_change(8_470_000)
    '+8.47 MB'
    """
    return f"{'+' if size_bytes > 0 else ''}{format_size(size_bytes)}"


def format_duration(duration_s: float) -> str:
    """Returns `duration_s` in the one or two units that a user would use.

    Example:
    >>> format_duration(5025)
    '1 h 24 min'
    """
    if duration_s < 0.9995:
        return f"{duration_s * 1000:.0f} ms"
    if duration_s < 9.95:
        return f"{duration_s:.1f} s"
    total_s = round(duration_s)
    for unit_s, unit, smaller_s, smaller in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if total_s >= unit_s:
            whole, rest = divmod(round(total_s / smaller_s) * smaller_s, unit_s)
            return f"{whole} {unit} {rest // smaller_s} {smaller}"
    return f"{total_s} s"


def _three_figures(value: float) -> str:
    magnitude = abs(value)
    if magnitude >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if magnitude >= 9.995 else f"{value:.2f}"
