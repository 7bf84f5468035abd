"""A script as the rules see it: its tree, and what is known of its names."""

import ast
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO

from memfit.lint.script.compiled_functions import CompiledFunctions
from memfit.lint.script.containers import ContainerAdditions
from memfit.lint.script.expression_kinds import ExpressionKinds
from memfit.lint.script.names import Names
from memfit.lint.script.repetition import Repetition
from memfit.lint.script.tf_data_chains import TfDataChains
from memfit.lint.script.training_loops import TrainingLoops
from memfit.lint.script.tree import Tree

_NOQA = re.compile(r"#\s*noqa(?P<codes>\s*:\s*[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*)?", re.IGNORECASE)
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Script:
    """A script and what is known of it.

    Attributes:
        tree: Where each node stands.
        names: What names stand for.
        compilations: Functions that a framework compiles.
        kinds: What expressions give.
        repeats: What runs again and again.
        training: Which loops train.
        chains: Pipelines of tf.data.
        keeps: Values that are put into containers.
    """

    tree: Tree
    names: Names
    compilations: CompiledFunctions
    kinds: ExpressionKinds
    repeats: Repetition
    training: TrainingLoops
    chains: TfDataChains
    keeps: ContainerAdditions


def read_script(text: str) -> Script:
    """Returns the script that `text` is.

    Raises:
        SyntaxError: If it is not Python.
    """
    tree = Tree(ast.parse(text))
    names = Names(tree)
    compilations = CompiledFunctions(names)
    kinds = ExpressionKinds(names, compilations)
    repeats = Repetition(names)
    training, chains, keeps = (
        TrainingLoops(kinds),
        TfDataChains(names, kinds),
        ContainerAdditions(names, repeats),
    )
    return Script(tree, names, compilations, kinds, repeats, training, chains, keeps)


def read_silenced(text: str) -> dict[int, frozenset[str]]:
    """Returns the codes that `# noqa` silences on each line; an empty set silences all."""
    return {
        token.start[0]: frozenset(re.findall(r"[A-Z]+[0-9]+", (match["codes"] or "").upper()))
        for token in _comments(text)
        if (match := _NOQA.search(token.string))
    }


def _comments(text: str) -> Iterator[tokenize.TokenInfo]:
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token


def shown(node: ast.AST) -> str:
    """Returns the code of `node` on one line, cut if it is long."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
