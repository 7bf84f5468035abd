"""What the code of a finding means: the text that `memfit explain` prints and the site shows."""

import re
from importlib.resources import files

from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from memfit.diagnose.lint.hint import Rule

_FOLDER = files("memfit.report") / "explained"
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_FIRST_SENTENCE = re.compile(r"\*\*What happens\.\*\* (.+?[.:])(?:\s|$)", re.DOTALL)
_FIGURES = (
    "Figures in MB, where there are any, are growth an iteration of small scripts, measured once "
    "on a CPU: they say what helps, not what your training loses."
)


def list_codes() -> list[str]:
    """Returns every code that a finding can have."""
    return sorted(one.name.removesuffix(".md") for one in _FOLDER.iterdir())


def read_explanation(code: str) -> str:
    """Returns the text about `code` as Markdown; its links are relative to its own file."""
    return (_FOLDER / f"{code}.md").read_text(encoding="utf-8")


def render_explanation(code: str, console: Console) -> None:
    """Prints what `code` means, how memfit knows, an example before and after, what to try."""
    text = _LINK.sub(r"\1", read_explanation(code))
    console.print(Markdown(f"{text}\n\n{_FIGURES}", hyperlinks=False))


def render_rule(rule: Rule, console: Console) -> None:
    """Prints what a rule of lint is about, and where more is told of its cause."""
    lines = [f"{rule.code} {rule.name}, a rule of memfit lint", "", rule.summary]
    if rule.cause in list_codes():
        lines.append(f"memfit run calls it {rule.cause}. More: memfit explain {rule.cause}")
    console.print("\n".join(lines), markup=False)


def render_codes(console: Console) -> None:
    """Prints every code with the first sentence about it."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    for code in list_codes():
        table.add_row(code, summarise_code(code))
    console.print(table)


def summarise_code(code: str) -> str:
    """Returns the first sentence about `code`, on one line."""
    found = _FIRST_SENTENCE.search(_LINK.sub(r"\1", read_explanation(code)))
    sentence = " ".join(found[1].split()) if found else ""
    return f"{sentence.removesuffix(':')}." if sentence.endswith(":") else sentence
