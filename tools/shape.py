"""Prints the shape of the source tree as a table: information, not a gate.

Run it in the root of a clone: `make shape`, or `python tools/shape.py [--root FOLDER] [--list]`.
It reads the source only and imports nothing of memfit, so that it also reads older trees.
"""

import argparse
import ast
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

# Words that end like a participle but name a thing, or are the frameworks' own word for it.
NOUNS = {"finding", "ranking", "ragged", "recording", "retracing", "speed", "thread"}
# Irregular participles in use as names; the regular ones end in -ed or -ing.
PARTICIPLES = {"taken", "held", "kept", "known", "made", "seen", "told", "chosen", "drawn", "given"}
DECISION_CODE = ("fitting/search.py", "act/choosing.py")
BACKENDS = ("tensorflow", "jax", "torch")
# Code that asks which backend Keras uses, or will use.
ASKING = {
    "keras.backend.backend()": r"keras\.backend\.backend\(\)|keras\.config\.backend\(\)",
    "keras.config.backend()": r"getattr\(config, \"backend\"",
    "KERAS_BACKEND": r"environ\S*KERAS_BACKEND",
}
PRIVATE = (
    "call_context_args call_has_training_arg compile_loss compile_metrics flat_losses "
    "flatten_layers inbound_nodes jax_state jax_state_synced keras_history loss_ids loss_tracker "
    "outputs_struct seed_generators should_torch_compile standardize_inputs symbolic_build "
    "trainable_variables_indices untrack_variable user_loss user_metrics user_weighted_metrics"
)


@dataclass
class Module:
    """One source file.

    Attributes:
        path: The file.
        name: Its name in the package, such as `"agent/recorder"`.
        tree: Its syntax tree.
        text: Its text.
        imports: Names in the package of the modules that it imports.
    """

    path: Path
    name: str
    tree: ast.Module
    text: str
    imports: set[str] = field(default_factory=set)

    @property
    def folder(self) -> str:
        """The folder, `""` for the root of the package."""
        inner = self.path.parent.as_posix().rpartition("src/memfit")[2]
        return inner.strip("/")


def read_modules(root: Path) -> dict[str, Module]:
    """Returns the modules of the package below `root`, with what they import."""
    package = root / "src" / "memfit"
    modules = {}
    for path in sorted(package.rglob("*.py")):
        name = path.relative_to(package).with_suffix("").as_posix().removesuffix("/__init__")
        text = path.read_text(encoding="utf-8")
        modules[name] = Module(path, name, ast.parse(text), text)
    for module in modules.values():
        module.imports = {one for one in _imports(module, modules) if one != module.name}
    return modules


def _imports(module: Module, modules: dict[str, Module]) -> Iterator[str]:
    for node in _running(module.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] != "memfit":
                continue
            inner = "/".join(parts[1:])
            yield inner if inner in modules else "/".join(parts[1:-1])


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those below `if TYPE_CHECKING`, which imports nothing when it runs."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from _running(node)


def largest_folder(modules: dict[str, Module]) -> str:
    """Returns the folder with the most modules, `__init__` not counted."""
    counts: dict[str, int] = defaultdict(int)
    for module in modules.values():
        counts[module.folder] += module.path.name != "__init__.py"
    folder = max(counts, key=lambda one: counts[one])
    return f"{counts[folder]} ({folder})"


def folder_cycles(modules: dict[str, Module]) -> list[str]:
    """Returns the groups of folders that import each other, directly or not.

    The root (public names, errors, units) imports everything lazily and is left out.
    """
    edges: dict[str, set[str]] = defaultdict(set)
    for module in modules.values():
        for name in module.imports:
            target = modules.get(name)
            if target is not None and target.folder and module.folder != target.folder:
                edges[module.folder].add(target.folder)
    edges.pop("", None)
    reach = {folder: _reachable(folder, edges) for folder in edges}
    groups = {
        tuple(sorted({one, *(two for two in reach[one] if one in reach.get(two, ()))}))
        for one in reach
        if one in reach[one]
    }
    return [" <-> ".join(group) for group in sorted(groups)]


def _reachable(folder: str, edges: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(edges[folder])
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting.extend(edges.get(one, ()))
    return seen


def backend_choosers(modules: dict[str, Module]) -> tuple[list[str], list[str]]:
    """Returns modules of `backends` that load others by name, and the ways to ask for a backend."""
    loading = [
        module.name
        for module in modules.values()
        if module.name.startswith("backends") and "import_module(" in module.text
    ]
    texts = "\n".join(module.text for module in modules.values())
    return loading, [way for way, code in ASKING.items() if re.search(code, texts)]


def private_keras(modules: dict[str, Module]) -> list[str]:
    """Returns the modules that use `keras.src` or private attributes; one package counts once."""
    known = re.compile(rf"keras\.src\b|[a-z)\]]\._(?:{PRIVATE.replace(' ', '|')})\b")
    found = [module.name for module in modules.values() if known.search(module.text)]
    return sorted({"keras_private" if "keras_private" in one else one for one in found})


def double_classes(modules: dict[str, Module]) -> list[str]:
    """Returns public class names that are defined more than once.

    One class a framework, in `backends`, has one meaning: such a topic counts once.
    """
    places: dict[str, set[str]] = defaultdict(set)
    for module in modules.values():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                is_backend = module.path.stem in BACKENDS
                places[node.name].add(module.folder if is_backend else module.name)
    return sorted(f"{name} ({', '.join(sorted(at))})" for name, at in places.items() if len(at) > 1)


def participles(modules: dict[str, Module]) -> list[str]:
    """Returns the modules that are named by one word that is a participle or a gerund."""
    found = []
    for module in modules.values():
        word = module.path.stem  # a package is named for what a user asks: fitting, streaming
        is_regular = word.endswith(("ing", "ed")) and len(word) > 4
        if word not in NOUNS and (is_regular or word in PARTICIPLES):
            found.append(module.name)
    return found


def fan_outs(modules: dict[str, Module]) -> list[tuple[int, str]]:
    """Returns how many modules of the package each one imports, the most first."""
    counted = [(len(one.imports), one.name) for one in modules.values() if one.name]
    return sorted(counted, reverse=True)


def body_lengths(modules: dict[str, Module]) -> list[tuple[int, str]]:
    """Returns the length of every function's body, docstring not counted."""
    return sorted(
        (_body_length(node), f"{module.name}.{node.name}")
        for module in modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def _body_length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def untested_decisions(root: Path) -> int:
    """Returns the lines of modules that decide how to fit and that no unit test imports."""
    tests = "\n".join(path.read_text() for path in (root / "tests" / "unit").rglob("*.py"))
    lines = 0
    for name in DECISION_CODE:
        path = root / "src" / "memfit" / name
        folder, _, stem = name.removesuffix(".py").replace("/", ".").rpartition(".")
        is_tested = f"memfit.{folder}.{stem}" in tests or re.search(
            rf"from memfit\.{folder} import .*\b{stem}\b", tests
        )
        if path.exists() and not is_tested:
            lines += len(path.read_text().splitlines())
    return lines


def test_minutes(root: Path) -> str:
    """Returns what `make test` took, if it has left a note of it."""
    note = root / "build" / "test-minutes"
    return note.read_text().strip() if note.exists() else "not measured"


def table(root: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """Returns the rows of the table, and the names behind the numbers."""
    modules = read_modules(root)
    loading, asking = backend_choosers(modules)
    cycles, private = folder_cycles(modules), private_keras(modules)
    classes, names = double_classes(modules), participles(modules)
    fans, bodies = fan_outs(modules), body_lengths(modules)
    p99 = statistics.quantiles([length for length, _ in bodies], n=100)[-1]
    readme = len((root / "README.md").read_text().splitlines())
    rows = [
        ("largest folder, modules", largest_folder(modules)),
        ("folder cycles", str(len(cycles))),
        ("ways to find the backend", f"{len(loading)} + {len(asking)}"),
        ("modules on Keras's private names", str(len(private))),
        ("public class names with two meanings", str(len(classes))),
        ("module names that are a bare participle or gerund", str(len(names))),
        ("highest fan-out", f"{fans[0][0]} ({fans[0][1]})"),
        ("body length p99 / max", f"{p99:.0f} / {bodies[-1][0]} ({bodies[-1][1]})"),
        ("decision code without unit tests, lines", str(untested_decisions(root))),
        ("README lines", str(readme)),
        ("`make test`, minutes", test_minutes(root)),
    ]
    behind = [
        f"folder cycles: {'; '.join(cycles)}",
        f"load a backend's module: {', '.join(loading)}",
        f"ask for the backend: {', '.join(asking)}",
        f"Keras's private names: {', '.join(private)}",
        f"class names: {', '.join(classes)}",
        f"participles: {', '.join(names)}",
        f"fan-out: {', '.join(f'{name} {count}' for count, name in fans[:12])}",
    ]
    return rows, behind


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Print the shape of the source tree.")
    parser.add_argument("--root", type=Path, default=Path(), help="a clone (this folder)")
    parser.add_argument("--list", action="store_true", help="also print the names behind it")
    args = parser.parse_args()
    rows, behind = table(args.root)
    width = max(len(label) for label, _ in rows)
    for label, value in rows:
        print(f"{label:{width}}  {value}")
    if args.list:
        print(*("", *behind), sep="\n")


if __name__ == "__main__":
    main()
