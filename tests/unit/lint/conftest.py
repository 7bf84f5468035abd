"""Examples of what lint sees and what it passes: the files in cases/."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

CASES = Path(__file__).parent / "cases"
_CASE = re.compile(r"^## (?P<title>.+?)\n\n```python\n(?P<code>.*?)^```$", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"#! (MF\d+(?: MF\d+)*)$")


@dataclass(frozen=True)
class Case:
    """A script in which `#! MF201` marks each line that lint must name, and no other."""

    title: str
    code: str

    @property
    def expected(self):
        return {
            (number, code)
            for number, line in enumerate(self.code.splitlines(), 1)
            if (match := _MARK.search(line))
            for code in match[1].split()
        }

    @property
    def rules(self):
        return re.findall(r"MF\d+", self.title)


def read_cases():
    return [
        Case(match["title"], match["code"])
        for path in sorted(CASES.glob("*.md"))
        for match in _CASE.finditer(path.read_text())
    ]


@pytest.fixture
def cases():
    return read_cases()


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        found = read_cases()
        metafunc.parametrize("case", found, ids=[case.title for case in found])
