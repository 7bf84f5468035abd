"""JAX: arrays never change, and random numbers come from keys that are passed on."""

from typing import Any


def is_module(value: Any) -> bool:
    """JAX has no such objects."""
    return False


def unwrap(value: Any) -> Any:
    """Nothing is wrapped."""
    return value


def find_variable(value: Any) -> Any | None:
    """JAX has no variables."""
    return None


def read(variable: Any) -> Any:
    """There is none."""
    raise NotImplementedError


def write(variable: Any, array: Any) -> None:
    """There is none."""
    raise NotImplementedError


def get_random_state() -> None:
    """There is none."""


def set_random_state(state: None) -> None:
    """There is nothing to put back."""
