"""What the code of a finding means: the text that `memfit explain` prints and the site shows."""

import re
from importlib.resources import files

from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

from memfit.diagnose.causes.catalogue import CATALOGUE
from memfit.lint.rules.rule import Rule

_FOLDER = files("memfit.report") / "explained"
_LINK = re.compile(r"\[([^\]]+)\]\([^)]+\)")
_FIRST_SENTENCE = re.compile(r"\*\*What happens\.\*\* (.+?[.:])(?:\s|$)", re.DOTALL)
_EXAMPLE = re.compile(r"^```python$", re.MULTILINE)
_FIGURES = (
    "An iteration is an epoch, a fold or a group of steps of a small script, measured once on a "
    "CPU: figures in MB say what helps, not what your training loses."
)
# What the two examples of a code are called, here and on the site.
EXAMPLES = ("before", "after")


def list_codes() -> list[str]:
    """Returns every code that a finding can have."""
    return sorted(CATALOGUE)


def read_explanation(code: str) -> str:
    """Returns the text about `code` as Markdown; its links are relative to its own file."""
    return (_FOLDER / f"{code}.md").read_text(encoding="utf-8")


def label_examples(text: str, opening: str) -> str:
    """Returns an explanation with its two examples labelled.

    Args:
        text: The explanation.
        opening: What opens an example instead, with `{label}` in it.
    """
    labels = iter(EXAMPLES)
    return _EXAMPLE.sub(lambda _: opening.format(label=next(labels)), text)


def render_explanation(code: str, console: Console) -> None:
    """Prints what `code` means, how memfit knows, an example before and after, what to try."""
    text = label_examples(_LINK.sub(r"\1", read_explanation(code)), "*{label}:*\n\n```python")
    if "an iteration" in " ".join(text.split()):
        text = f"{text}\n\n{_FIGURES}"
    console.print(Markdown(text, hyperlinks=False))


def render_rule(rule: Rule, console: Console) -> None:
    """Prints what a rule of lint is about, and where its cause is explained."""
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
