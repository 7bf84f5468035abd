"""Every Python example of the documents runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import QUIET, SCRIPTS

ROOT = Path(__file__).parents[1]
EXPLAINED = sorted((ROOT / "src" / "memfit" / "report" / "explained").glob("*.md"))
# Each block by itself, with names of a script around it; or all blocks of a page as one script.
BY_BLOCK = [
    ROOT / "README.md",
    *(ROOT / "docs" / f"{one}.md" for one in ("fitting", "lint", "what-it-does")),
]
AS_SCRIPTS = [ROOT / "docs" / f"{one}.md" for one in ("devices", "start", "growing")]
# Run by tests/backends/test_streaming_docs.py and test_search_loops.py.
ELSEWHERE = {"streaming.md", "search.md"}


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    # The page about devices comes first: what it shows is done before a framework starts.
    pages = (*(f"+{page}" for page in AS_SCRIPTS), *map(str, (*BY_BLOCK, *EXPLAINED)))
    return run_examples(pages, tmp_path_factory.mktemp("examples"))


def run_examples(pages, folder):
    """Returns the examples that failed, each with its page."""
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "examples.py"), *pages],
        cwd=folder,
        env={**os.environ, **QUIET, "KERAS_BACKEND": "tensorflow", "XDG_CACHE_HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("page", [*AS_SCRIPTS, *BY_BLOCK, *EXPLAINED], ids=lambda page: page.name)
def test_examples_run(page, failed):
    assert [one for one in failed if one[0] == page.name] == []


def test_every_page_with_an_example_is_run():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    with_examples = {page.name for page in pages if "```python" in page.read_text()}

    assert with_examples == {page.name for page in (*BY_BLOCK, *AS_SCRIPTS)} | ELSEWHERE


def test_what_is_not_run_says_so():
    text = "".join(page.read_text() for page in (*BY_BLOCK, *AS_SCRIPTS, *EXPLAINED))

    found = re.findall(r'^```python title="((?:not|needs) [^"]+)"', text, re.MULTILINE)

    assert sorted(found) == ["needs an accelerator", "not Python"]
