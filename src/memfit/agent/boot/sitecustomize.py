"""Loaded by Python before the script: `memfit run` puts this folder first on PYTHONPATH.

A user's own `sitecustomize` runs first, as it would without memfit. Whatever goes wrong
here, the script starts: it may be another Python, or one without memfit.
"""

import sys


def _load() -> None:
    """Takes this folder off the path, and runs the user's own `sitecustomize`.

    What that raises is Python's to report, as it would without memfit.
    """
    import os

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != here]
    this = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found]  # noqa: F401  # the user's own
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        if this is not None:  # there is none
            sys.modules["sitecustomize"] = this


def _watch() -> None:
    try:
        from memfit.agent import import_watch

        import_watch.watch()
    except Exception:  # noqa: BLE001, S110  # the script must start
        pass


try:
    _load()
finally:
    _watch()
