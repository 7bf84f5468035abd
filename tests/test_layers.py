"""Imports go one way, between packages and inside them, and only `backends` knows a framework."""

import ast
import re
from pathlib import Path

import pytest

import memfit

ROOT = Path(memfit.__file__).parent
# A package imports only those in the rows above its own.
ORDER = (
    (
        "__init__",
        "arguments",
        "budget",
        "errors",
        "failsafe",
        "keras_private",
        "messages",
        "slots",
        "units",
    ),
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
# The same inside a package: its folders and modules; `*` is what is not listed.
INSIDE = {
    "backends": (
        "arrays_on_disk",
        "out_of_memory",
        "user_datasets",
        "xla_order",
        "devices",
        "objects",
        "state",
        "events",
        "registries",
        "accelerators",
        "feeds",
        "first_step",
        "micro_batches",
        "recompute",
        "segments",
        "retry",
        "proof",
        "*",
    ),
    "lint": ("hint", "script", "suggest", "rules", "*"),
    "diagnose": ("growth", "causes", "*"),
    "fitting": ("state", "graph", "proof", "levers", "*"),
    "streaming": (
        "data",
        "files",
        "order",
        "views",
        "store",
        "sources",
        "open_data",
        "loader",
        "ingest",
        "inspect",
        "*",
    ),
    "report": ("run", "*"),
    "agent": ("*", "boot"),
    "cli": ("status_line", "data_arguments", "data", "*"),
}
MODULES = sorted(ROOT.rglob("*.py"))
TREES = {path: ast.parse(path.read_text()) for path in MODULES}

FRAMEWORKS = ("tensorflow", "jax", "jaxlib", "torch")
# Classes of frameworks, and attributes that only their objects and modules have.
CLASSES = (
    "ArrayImpl",
    "ConcreteFunction",
    "DataLoader",
    "DatasetV2",
    "EagerTensor",
    "FuncGraph",
    "GradientTape",
    "OwnedIterator",
    "PjitFunction",
    "XlaRuntimeError",
)
ATTRIBUTES = {
    "clear_caches",
    "element_spec",
    "empty_cache",
    "executing_eagerly",
    "function_spec",
    "grad_fn",
    "live_arrays",
    "local_devices",
    "memory_allocated",
    "memory_stats",
    "next_functions",
    "python_function",
    "set_memory_growth",
    "untyped_storage",
}
# `torch._dynamo`, `tensorflow`, `EagerTensor`: a name, not a sentence for a user.
NAME = re.compile(rf"({'|'.join(FRAMEWORKS)})(\.\w+)*|{'|'.join(CLASSES)}")
# Vocabulary of the user's own source, and Keras's private names.
VOCABULARY = ("lint", "fixes", "keras_private")
# Texts for users, and what reads an object that only one framework has.
KNOWING = {
    "diagnose/machine_advice.py": "advice in words, one for each backend of Keras",
    "diagnose/causes/retracing.py": "advice in words, by the compiler that a recording names",
    "streaming/sources/tf_data.py": "reads the tf.data.Dataset that the user gives",
}


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def stage_of(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path):
    """Yields what a module imports of memfit, as parts: `("streaming", "data", "source")`."""
    for node in ast.walk(TREES[path]):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            package, *rest = name.split(".")
            if package == "memfit":
                yield rest or ["__init__"]


def rank_inside(package, part):
    listed = INSIDE.get(package, ("*",))
    return listed.index(part if part in listed or "*" not in listed else "*")


def is_module(package, part):
    return (ROOT / package / part).is_dir() or (ROOT / package / f"{part}.py").exists()


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_packages_above_its_own(path):
    if path == ROOT / "__init__.py":
        return  # public names only; test_public_api.py looks at those
    rank = RANK[stage_of(path)]

    below = [".".join(parts) for parts in imported(path) if RANK.get(parts[0], 0) > rank]

    assert below == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_folders_above_its_own(path):
    package, *inside = path.relative_to(ROOT).with_suffix("").parts
    if not inside or inside == ["__init__"]:
        return  # `backends/__init__` names the protocols of all topics
    rank = rank_inside(package, inside[0])

    below = [
        ".".join(parts)
        for parts in imported(path)
        if parts[0] == package and len(parts) > 1 and is_module(package, parts[1])
        if rank_inside(package, parts[1]) > rank
    ]

    assert below == []


def test_every_folder_has_its_place_in_the_order():
    folders = {
        (path.parent.parent.name, path.parent.name)
        for path in MODULES
        if path.name == "__init__.py" and len(path.relative_to(ROOT).parts) == 3
    }

    assert {one for one in folders if one[1] not in INSIDE.get(one[0], ())} == set()


def test_the_pure_stages_touch_nothing():
    """`diagnose` and `report` are functions of values: no file, process or clock of their own."""
    forbidden = {"subprocess", "psutil", "socket", "threading", "tempfile", "signal"}

    touching = {
        (name_of(path), alias.name)
        for path in MODULES
        if stage_of(path) in ("fixes", "lint", "diagnose", "report")
        for node in ast.walk(TREES[path])
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in forbidden
    }

    assert touching == set()


def test_only_backends_import_a_framework():
    importing = {
        name_of(path)
        for path in MODULES
        if stage_of(path) != "backends"
        for node in ast.walk(TREES[path])
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
        )
        if name.split(".")[0] in FRAMEWORKS
    }

    assert importing == set()


def framework_names(tree):
    """Yields strings that name a module or class of a framework, and attributes of its objects.

    Docstrings are texts, and the backend in `load(topic, "jax")` is a choice, not knowledge.
    """
    left_out = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            left_out.add(node.value)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "load":
            left_out.update(node.args)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
            yield node.attr
        if isinstance(node, ast.Constant) and node not in left_out:
            text = str(node.value)
            if NAME.fullmatch(text) or text in ATTRIBUTES:
                yield text


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_only_backends_know_the_names_of_a_framework(path):
    if stage_of(path) in ("backends", *VOCABULARY) or name_of(path) in KNOWING:
        return

    assert list(framework_names(TREES[path])) == []


def test_every_exception_is_still_needed():
    needed = {name for name in KNOWING if list(framework_names(TREES[ROOT / name]))}

    assert needed == set(KNOWING)


def test_only_load_chooses_a_module_of_a_backend():
    choosing = [
        name_of(path)
        for path in MODULES
        for node in ast.walk(TREES[path])
        if isinstance(node, ast.Attribute) and node.attr == "import_module"
        if stage_of(path) == "backends" or "memfit.backends" in path.read_text()
    ]

    assert choosing == ["backends/__init__.py"]


def find_protocols():
    """Returns the protocol of each topic, as the overloads of `load` give them."""
    return {
        node.args.args[0].annotation.slice.value: node.returns.value
        for node in TREES[ROOT / "backends/__init__.py"].body
        if isinstance(node, ast.FunctionDef) and node.name == "load" and node.decorator_list
    }


def protocol_members(tree, protocol):
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == protocol:
            for one in node.body:
                if isinstance(one, ast.FunctionDef):
                    yield one.name
                elif isinstance(one, ast.AnnAssign):
                    yield one.target.id


def defined_names(tree):
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (one.id for one in node.targets if isinstance(one, ast.Name))
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname or alias.name for alias in node.names)


def test_every_topic_can_be_loaded():
    topics = {path.name for path in (ROOT / "backends").iterdir() if (path / "jax.py").exists()}

    assert set(find_protocols()) == topics


@pytest.mark.parametrize("framework", ["tensorflow", "jax", "torch"])
@pytest.mark.parametrize("topic", find_protocols())
def test_each_framework_implements_the_protocol_of_a_topic(topic, framework):
    folder = ROOT / "backends" / topic
    wanted = set(protocol_members(TREES[folder / "__init__.py"], find_protocols()[topic]))

    missing = wanted - set(defined_names(TREES[folder / f"{framework}.py"]))

    assert wanted
    assert missing == set()
