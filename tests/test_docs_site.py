"""The site of docs/ is whole: every page has its place, and every link leads to a heading."""

import re
import unicodedata
from pathlib import Path

import pytest

from memfit.report.explanation import list_codes

ROOT = Path(__file__).parents[1]
EXPLAINED = ROOT / "src" / "memfit" / "report" / "explained"
NAVIGATION = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *EXPLAINED.glob("*.md")])
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
# What tools/site_pages.py makes when the site is built.
GENERATED = {"commands.md", "reference.md", *(f"findings/{code}.md" for code in list_codes())}


def test_the_navigation_names_every_page_once():
    named = re.findall(r"^ +- [^#\n]*: (\S+\.md)$", NAVIGATION, re.MULTILINE)
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} | GENERATED

    assert sorted(named) == sorted(pages)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files_and_headings(document):
    text = _FENCED.sub("", document.read_text())
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", text):
        if "://" in target:
            continue
        path = (document.parent / target).resolve() if target else document
        assert path.exists(), target
        assert not anchor or anchor in anchors_of(path), f"{target}#{anchor}"


def anchors_of(path):
    """What Markdown makes of headings, on the site and where the repository is shown."""
    text = _FENCED.sub("", path.read_text())
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {to_anchor(heading) for heading in headings}


def to_anchor(heading):
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
