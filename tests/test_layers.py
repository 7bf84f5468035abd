"""Stages import only what stands to their left."""

import ast
from pathlib import Path

import pytest

import memfit

ROOT = Path(memfit.__file__).parent
ORDER = (
    ("arguments", "budget", "errors", "failsafe", "keras_private", "messages", "units", "__init__"),
    ("backends",),
    ("measure",),
    ("user_code",),
    ("heap",),
    ("record",),
    ("fixes",),
    ("lint",),
    ("diagnose",),
    ("fitting", "streaming", "sessions"),
    ("report",),
    ("supervise",),
    ("agent",),
    ("cli",),
    ("__main__",),
)
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
MODULES = sorted(ROOT.rglob("*.py"))


def stage_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_stages(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, _, rest = name.partition(".")
            if package == "memfit":
                yield rest.split(".")[0] if rest else "__init__"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_stages_to_its_left(path):
    if path == ROOT / "__init__.py":
        return  # public names only; test_public_api.py looks at those
    rank = RANK[stage_of(path)]

    to_the_right = [name for name in imported_stages(path) if RANK.get(name, 0) > rank]

    assert to_the_right == []


def test_the_pure_stages_touch_nothing():
    """`diagnose` and `report` are functions of values: no file, process or clock of their own."""
    forbidden = {"subprocess", "psutil", "socket", "threading", "tempfile", "signal"}

    touching = {
        (str(path.relative_to(ROOT)), alias.name)
        for path in MODULES
        if stage_of(path) in ("fixes", "lint", "diagnose", "report")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in forbidden
    }

    assert touching == set()


def test_only_the_adapters_name_a_framework():
    frameworks = {"tensorflow", "jax", "torch"}

    importing = {
        str(path.relative_to(ROOT))
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
        )
        if name.split(".")[0] in frameworks
    }

    assert {Path(name).parts[0] for name in importing} <= {"backends"}
