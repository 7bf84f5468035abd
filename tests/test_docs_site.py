"""The site of docs/ is whole: every page has its place, and every link leads to a heading."""

import importlib
import re
import unicodedata
from pathlib import Path
from xml.etree import ElementTree

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


def test_every_picture_is_shown_and_fetches_nothing():
    shown = {Path(one).name for one in re.findall(r"\]\(([^)\s]+\.svg)\)", all_text())}
    pictures = sorted((ROOT / "docs" / "pictures").glob("*.svg"))

    assert {picture.name for picture in pictures} == shown
    for picture in pictures:
        assert ElementTree.parse(picture).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        assert re.findall(r"(?:url\(|href=)[\"']?https?:", picture.read_text()) == []


def test_the_page_on_folklore_shows_what_is_measured(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    scenarios = importlib.import_module("folklore").SCENARIOS
    page = (ROOT / "docs" / "folklore.md").read_text()

    tables = re.findall(r"^\| remedy +\| \w+: .*\n\|[-|]+\|\n((?:\|.*\n)+)", page, re.MULTILINE)

    assert [re.findall(r"^\| (.+?) +\|", table, re.MULTILINE) for table in tables] == [
        [remedy.variable or remedy.name for remedy in scenario.remedies] for scenario in scenarios
    ]


def all_text():
    return "".join(document.read_text() for document in DOCUMENTS)


def anchors_of(path):
    """What Markdown makes of headings, on the site and where the repository is shown."""
    text = _FENCED.sub("", path.read_text())
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {to_anchor(heading) for heading in headings}


def to_anchor(heading):
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
