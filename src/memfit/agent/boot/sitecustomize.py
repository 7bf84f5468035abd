"""Loaded by Python before the script: `memfit run` puts this folder first on PYTHONPATH.

A user's own `sitecustomize` runs first, as it would without memfit. Whatever goes wrong
here, the script starts: it may be another Python, or one without memfit.
"""

import sys


def _load() -> None:
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != here]
    this = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401  # the user's own
    except ImportError:
        if this is not None:
            sys.modules["sitecustomize"] = this
    from memfit.agent import import_watch

    import_watch.watch()


try:
    _load()
except Exception:  # noqa: BLE001, S110  # the script must start
    pass
