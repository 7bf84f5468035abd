"""What is in this process, without a walk over objects: counts by kind, and loaded software."""

import gc
import os
import sys
import threading
import time

from memfit.agent import gc_pause
from memfit.backends import BACKEND_NAMES, active_backend_name, load, loaded_backend_names
from memfit.backends.objects import PACKAGES
from memfit.backends.registries import Counted, Registries
from memfit.measure.malloc import malloc_name
from memfit.measure.process import count_executables, count_files
from memfit.record.samples import Software

_PACKAGES = ("keras", *dict.fromkeys((*BACKEND_NAMES, *PACKAGES)), "numpy")


def read_software() -> Software:
    """Returns the backend, and the versions of the packages that are loaded now."""
    loaded = ((name, sys.modules.get(name)) for name in _PACKAGES)
    versions = {
        name: str(module.__version__)
        for name, module in loaded
        if module is not None and hasattr(module, "__version__")
    }
    return Software(time.monotonic(), active_backend_name(), versions, malloc_name())


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
        counted = _count(load("registries", name))
        numbers.update(counted.numbers)
        sizes.update(counted.sizes)
    return Counted(numbers, sizes)


def _count(registries: Registries) -> Counted:
    try:
        return registries.count()
    except (AttributeError, RuntimeError):  # another version of it, or still being imported
        return Counted()


def _count_figures() -> int:
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    return len(helpers.Gcf.figs) if helpers is not None else 0
