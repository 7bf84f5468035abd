"""What runs in this process: the framework and the versions of what is loaded."""

import sys
import time

from memfit.backends import BACKEND_NAMES, active_backend_name
from memfit.backends.observe import PACKAGES
from memfit.measure.malloc import malloc_name
from memfit.record.samples import Software

_PACKAGES = ("keras", *dict.fromkeys((*BACKEND_NAMES, *PACKAGES)), "numpy")


def read_software() -> Software:
    """Returns what is loaded now."""
    loaded = ((name, sys.modules.get(name)) for name in _PACKAGES)
    versions = {
        name: str(module.__version__)
        for name, module in loaded
        if module is not None and hasattr(module, "__version__")
    }
    return Software(time.monotonic(), active_backend_name(), versions, malloc_name())
