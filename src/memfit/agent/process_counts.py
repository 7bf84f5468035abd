"""How many things of each kind are alive: cheap counts that need no walk over objects."""

import gc
import os
import sys
import threading

from memfit.agent import gc_pause
from memfit.backends import load, loaded_backend_names
from memfit.backends.observe import Counted, Observe
from memfit.measure.process import count_executables, count_files


def count_things() -> Counted:
    """Returns the counts of this process: its registries, threads, files and compiled code."""
    numbers: dict[str, int] = {
        "threads": threading.active_count(),
        "files": count_files(os.getpid()) or 0,
        "executables": count_executables(os.getpid()) or 0,
        "figures": _count_figures(),
        "collector_off": int(not gc_pause.is_enabled() or not gc.get_threshold()[0]),
        "frozen": gc.get_freeze_count(),
        "young_objects": gc.get_count()[0],
    }
    sizes: dict[str, int] = {}
    for name in loaded_backend_names():
        counted = _ask(load("observe", name))
        numbers.update(counted.numbers)
        sizes.update(counted.sizes)
    return Counted(numbers, sizes)


def _ask(backend: Observe) -> Counted:
    try:
        return backend.count()
    except (AttributeError, RuntimeError):  # another version of it, or still being imported
        return Counted()


def _count_figures() -> int:
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    return len(helpers.Gcf.figs) if helpers is not None else 0
