"""Pages of the site that are made from the package when it is built: hooks of mkdocs.

Findings are the texts of `memfit explain` with a script to try from the zoo; commands are what the
parser says; the Python reference asks mkdocstrings for every public name.
"""

import argparse
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

import memfit
from memfit.cli import COMMANDS, make_parser
from memfit.report.explanation import label_examples, list_codes, read_explanation

ROOT = Path(__file__).parents[1]
ZOO = ROOT / "tests" / "zoo"
# Links that lead from file to file in the repository, and what they are on the site.
_LINKS = {"../src/memfit/report/explained/": "findings/", "../../../../docs/": "../"}


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are made here."""
    pages = {
        "commands.md": make_commands(),
        "reference.md": make_reference(),
        **{f"findings/{code}.md": make_finding(code) for code in list_codes()},
    }
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, **_how: Any) -> str:
    """Turns links between files of the repository into links between pages."""
    for in_repository, on_site in _LINKS.items():
        markdown = markdown.replace(f"]({in_repository}", f"]({on_site}")
    return markdown


def make_finding(code: str) -> str:
    """Returns what `memfit explain` prints, and a training with this fault from the zoo."""
    text = label_examples(read_explanation(code), '```python title="{label}"')
    note = (
        f"`memfit explain {code}` prints this. Figures in MB: [where they come from](../causes.md)."
    )
    return "\n\n".join([text, note, *find_script(code)])


def find_script(code: str) -> Iterator[str]:
    """Yields the first script of the zoo that has this one fault, with its fixed twin."""
    scripts = tomllib.loads((ZOO / "zoo.toml").read_text())["script"]
    for script in scripts:
        if [cause["code"] for cause in script["cause"]] == [code]:
            folder = ZOO / script["name"]
            yield (
                f"## A script to try\n\n{script['description']} ({script['backend']}). In a clone "
                f"of the repository:\n\n```\nKERAS_BACKEND={script['backend']} memfit run "
                f"tests/zoo/{script['name']}/leaking.py\n```"
            )
            for name, title in (("leaking.py", "it grows"), ("clean.py", "its fixed twin")):
                block = f'```python title="{name}"\n{(folder / name).read_text()}```'
                yield f'??? example "{title}: {name}"\n\n' + indent(block)
            return


def indent(text: str) -> str:
    """Returns `text` as the inside of a block that can be opened."""
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())


def make_commands() -> str:
    """Returns what `--help` of every command prints."""
    parts = ["# Commands", "What `memfit COMMAND --help` prints, made from the parser itself."]
    parser = make_parser()
    for name in COMMANDS:
        for words, command in walk(f"memfit {name}", choices_of(parser)[name]):
            parts.append(f"## {words}\n\n```text\n{command.format_help().rstrip()}\n```")
    return "\n\n".join(parts)


def walk(
    words: str, parser: argparse.ArgumentParser
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yields a command and those below it."""
    yield words, parser
    for name, below in choices_of(parser).items():
        yield from walk(f"{words} {name}", below)


def choices_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Returns the commands of a parser."""
    found = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}


def make_reference() -> str:
    """Returns a page with every public name, which mkdocstrings fills in."""
    groups: dict[str, list[str]] = {"Functions": [], "Classes": [], "Errors and warnings": []}
    for name in memfit.__all__:
        is_trouble = name.endswith(("Error", "Warning"))
        kind = (
            "Errors and warnings" if is_trouble else "Classes" if name[0].isupper() else "Functions"
        )
        groups[kind].append(name)
    parts = ["# Python", "Everything that `import memfit` offers, from its docstrings."]
    for kind, names in groups.items():
        parts += [f"## {kind}", *(f"::: memfit.{name}" for name in names)]
    return "\n\n".join(parts)
