"""Lints a script: source text in, hints out."""

import ast
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Mapping

from memfit.lint.all_rules import NOT_READ
from memfit.lint.hint import Hint
from memfit.lint.rules import FAMILIES
from memfit.lint.rules.rule import Match
from memfit.lint.script.script import read_script, read_silenced


def lint_source(text: str, file: str = "<text>") -> tuple[Hint, ...]:
    """Returns what can be seen to be wrong in a script, in the order of its lines.

    Args:
        text: The script.
        file: The name that the hints give it.

    Example:
    >>> [hint] = lint_source("import gc, keras; gc.disable()", "train.py")
    >>> hint.code, hint.line, hint.column
    ('MF601', 1, 19)
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as an invalid escape in the user's script
            script = read_script(text)
            silenced = read_silenced(text)
            seen = [one for family in FAMILIES for one in family.check(script)]
    except SyntaxError as error:
        return (unreadable(file, error.msg, error.lineno or 1, error.offset or 1),)
    except tokenize.TokenError as error:
        return (unreadable(file, str(error.args[0])),)
    except ValueError as error:  # null bytes, before Python 3.12
        return (unreadable(file, str(error)),)
    except (RecursionError, MemoryError):  # the parser raises either when its stack is full
        return (unreadable(file, "it is nested too deeply"),)
    return tuple(_hints(seen, re.split("\r\n?|\n", text), silenced, file))


def unreadable(file: str, why: str, line: int = 1, column: int = 1) -> Hint:
    """Returns the hint on a file that could not be checked."""
    return Hint(
        NOT_READ.code,
        f"this file cannot be read as Python: {why}",
        file,
        line,
        max(column, 1),
        f"see Python's own message: python -m py_compile {file}",
    )


def _hints(
    seen: Iterable[Match], lines: list[str], silenced: Mapping[int, frozenset[str]], file: str
) -> Iterator[Hint]:
    found = {
        Hint(one.rule.code, one.message, file, *_place(one.node, lines), one.fix, one.rule.url)
        for one in seen
        if not _is_silenced(one, silenced)
    }
    yield from sorted(found, key=lambda hint: (hint.line, hint.column, hint.code, hint.message))


def _place(node: ast.AST, lines: list[str]) -> tuple[int, int]:
    """Returns line and column: in a chain of calls, those of the last name."""
    line, offset = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call()) as method):
            line = method.end_lineno or line
            offset = (method.end_col_offset or 0) - len(method.attr.encode())
    # Python counts bytes; users and editors count characters.
    before = lines[line - 1].encode()[:offset] if line <= len(lines) else b""
    return line, len(before.decode(errors="ignore")) + 1


def _is_silenced(seen: Match, silenced: Mapping[int, frozenset[str]]) -> bool:
    first = getattr(seen.node, "lineno", 1)
    last = first if isinstance(seen.node, _BLOCKS) else getattr(seen.node, "end_lineno", first)
    codes = [silenced[line] for line in range(first, last + 1) if line in silenced]
    return any(not some or seen.rule.code in some for some in codes)


_BLOCKS = (ast.For, ast.AsyncFor, ast.While, ast.If, ast.With)
