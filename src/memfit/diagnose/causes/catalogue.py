"""Every cause that a finding can name: one row each, and the checks that look for them.

A new cause is a module beside this one, its check and its row here, a page in
`report/explained/` and a pair of scripts in the zoo.
"""

from collections.abc import Callable
from dataclasses import dataclass

from memfit.diagnose.causes.accumulating import (
    find_accumulating,
    find_files,
    find_long_tape,
    find_pinned_data,
    find_registry,
)
from memfit.diagnose.causes.allocator import find_pool, find_retained, find_retained_too
from memfit.diagnose.causes.buffers import find_large_buffers
from memfit.diagnose.causes.case import Case
from memfit.diagnose.causes.data import find_data_in_memory
from memfit.diagnose.causes.finding import Finding
from memfit.diagnose.causes.garbage import find_garbage, find_late_garbage
from memfit.diagnose.causes.held import find_held, find_views
from memfit.diagnose.causes.pages import find_file_pages
from memfit.diagnose.causes.retracing import (
    find_executables,
    find_many_executables,
    find_retracing,
)
from memfit.diagnose.causes.unexplained import (
    find_allocations,
    find_constants,
    find_seeded,
    find_unexplained,
)
from memfit.diagnose.causes.workers import find_workers

Check = Callable[[Case], list[Finding]]

# Checks that name what keeps the memory, the surest first; several may find something.
CHECKS: tuple[Check, ...] = (
    find_held,
    find_retained,
    find_large_buffers,
    find_workers,
    find_garbage,
    find_registry,
    find_pinned_data,
    find_retracing,
    find_many_executables,
    find_long_tape,
    find_accumulating,
    find_seeded,
)
# Run one after another until one finds something, where the checks leave much unexplained.
LAST_RESORTS: tuple[Check, ...] = (
    find_executables,
    find_constants,
    find_late_garbage,
    find_retained_too,
    find_views,
    find_pool,
    find_allocations,
    find_files,
    find_unexplained,
)
# Run whether memory grows or not.
ALWAYS: tuple[Check, ...] = (find_data_in_memory, find_file_pages)


@dataclass(frozen=True, slots=True)
class Cause:
    """What the diagnosis needs to know about one code of a finding.

    Attributes:
        code: The code; the page about it is `report/explained/<code>.md`.
        family: The module that finds it.
        content: What the memory is full of, in words, where it is always the same.
        is_inferred: Whether it is concluded from figures alone; otherwise its objects were seen.
        explains_growth: Whether it says why memory grows.
        made_by_loops: Whether a loop that builds models leaves it behind.
        verdict: The verdict of a run with this finding, if it decides that.
        brings_along: Codes that follow from it and need no finding of their own.
        related: Codes under which lint may name the same mistake.
    """

    code: str
    family: str
    content: str = "memory that is still in use"
    is_inferred: bool = False
    explains_growth: bool = True
    made_by_loops: bool = False
    verdict: str | None = None
    brings_along: tuple[str, ...] = ()
    related: tuple[str, ...] = ()


_ROWS = (
    Cause("killed", "killed", explains_growth=False, verdict="killed"),
    Cause("near-limit", "limits", explains_growth=False, verdict="near_limit"),
    Cause("held-tensors", "held", related=("held-graph", "stateful-layer")),
    Cause("held-graph", "held", related=("held-tensors", "stateful-layer")),
    Cause("stateful-layer", "held", related=("held-tensors", "held-graph")),
    Cause(
        "retracing",
        "retracing",
        content="traces, which are never freed",
        brings_along=("allocator-retains",),  # compilers leave small free blocks behind
        related=("accumulating-functions",),
    ),
    Cause(
        "accumulating-models",
        "accumulating",
        made_by_loops=True,
        brings_along=(
            "accumulating-functions",
            "accumulating-optimizers",
            "accumulating-datasets",
            "accumulating-iterators",
            "retracing",
        ),
        related=("accumulating-functions", "accumulating-optimizers"),
    ),
    Cause(
        "accumulating-functions",
        "accumulating",
        content="compiled functions, which are never freed",
        made_by_loops=True,
        brings_along=("retracing",),
        related=("retracing", "accumulating-models", "accumulating-optimizers"),
    ),
    Cause(
        "accumulating-optimizers",
        "accumulating",
        made_by_loops=True,
        related=("accumulating-models", "accumulating-functions"),
    ),
    Cause("accumulating-datasets", "accumulating", brings_along=("accumulating-iterators",)),
    Cause(
        "accumulating-iterators",
        "accumulating",
        brings_along=("accumulating-threads", "accumulating-datasets"),
    ),
    Cause(
        "accumulating-writers",
        "accumulating",
        brings_along=("accumulating-files", "accumulating-threads"),
    ),
    Cause("accumulating-figures", "accumulating", brings_along=("accumulating-files",)),
    Cause("accumulating-threads", "accumulating"),
    Cause("accumulating-files", "accumulating"),
    Cause("buffer-too-large", "buffers", content="a buffer of the data pipeline"),
    Cause("data-in-memory", "data", content="the data itself"),
    Cause(
        "uncollected-garbage",
        "garbage",
        is_inferred=True,
        brings_along=("allocator-retains",),  # malloc keeps what the collection freed
    ),
    Cause("allocator-retains", "allocator", is_inferred=True),
    Cause("file-pages", "pages"),
    Cause("workers-copy", "workers"),
    Cause("eager-constants", "unexplained"),
    Cause("eager-random", "unexplained"),
    Cause("unexplained-growth", "unexplained", is_inferred=True, explains_growth=False),
)
CATALOGUE = {row.code: row for row in _ROWS}


def cause_of(code: str) -> Cause:
    """Returns the row of `code`; one with nothing special for a code that has none."""
    return CATALOGUE.get(code) or Cause(code, family="")
