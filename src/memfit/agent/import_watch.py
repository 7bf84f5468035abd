"""Notices when the script imports Keras or a backend, however late, and hooks in then.

This module is loaded before every script, so it imports next to nothing.
"""

import contextlib
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from memfit.backends import BACKEND_NAMES

FRAMEWORKS = ("keras", *BACKEND_NAMES)
WATCHED = (*FRAMEWORKS, "matplotlib.figure")


class _Finder:
    """Finds the watched modules as Python would, and adds a call after each was loaded."""

    def __init__(self) -> None:
        self._is_searching = False

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> Any:
        if name not in WATCHED or self._is_searching:
            return None
        self._is_searching = True
        try:
            spec = _find_elsewhere(self, name, path, target)
        finally:
            self._is_searching = False
        if spec is not None and spec.loader is not None:
            _call_after_loading(spec, name)
        return spec


def watch() -> None:
    """Starts to watch imports; modules that are there already are hooked at once."""
    sys.meta_path.insert(0, _Finder())
    for name in WATCHED:
        if name in sys.modules:
            _loaded(name)


def _find_elsewhere(
    finder: _Finder, name: str, path: Any, target: ModuleType | None
) -> ModuleSpec | None:
    for other in sys.meta_path:
        if other is not finder and hasattr(other, "find_spec"):
            spec = other.find_spec(name, path, target)
            if spec is not None:
                return spec
    return None


def _call_after_loading(spec: ModuleSpec, name: str) -> None:
    """Hooks this one loader object; it stays what it is for everybody who asks it things."""
    loader: Any = spec.loader
    original = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        loader.__dict__.pop("exec_module", None)
        original(module)
        _loaded(name)

    try:
        loader.exec_module = exec_module
    except AttributeError:  # a loader without a place for it: this import goes unnoticed
        return


def _loaded(name: str) -> None:
    if name not in FRAMEWORKS and "memfit.agent.keras_hooks" not in sys.modules:
        return  # nothing is recorded before a framework is there; it is hooked then
    with contextlib.suppress(Exception):  # the monitor never harms the training
        from memfit.agent import keras_hooks

        keras_hooks.install(name)
