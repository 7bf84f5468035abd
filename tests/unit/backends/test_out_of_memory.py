"""Errors that say that memory ran out, and errors that are only like them."""

import builtins
import errno
import tomllib
from pathlib import Path

import pytest

from memfit.backends.out_of_memory import is_out_of_memory

TABLE = Path(__file__).parents[2] / "recordings" / "out_of_memory.toml"
ERRORS = tomllib.loads(TABLE.read_text())["error"]
LAYER = (
    "Exception encountered when calling A.call().\n\n{}\n\nArguments received by A.call():\n  • {}"
)


def make(type_name, message):
    """An error of this type, which needs no framework."""
    module, _, name = type_name.rpartition(".")
    if module == "builtins":
        return getattr(builtins, name)(message)
    bases = (RuntimeError,) if module.startswith(("torch", "jax")) else (Exception,)
    return type(name, bases, {"__module__": module})(message)


def raised(error, *, cause=None, context=None, is_hidden=False):
    """`error` as Python leaves it when it is raised because of, or while handling, another."""
    error.__cause__ = cause
    error.__context__ = context
    error.__suppress_context__ = is_hidden or cause is not None
    return error


@pytest.mark.parametrize("row", ERRORS, ids=lambda row: row["source"])
def test_each_message_of_the_table_is_judged_as_it_says(row):
    error = make(row["type"], row["message"])

    assert is_out_of_memory(error) is row["is_out_of_memory"]


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("std::bad_alloc"),
        type("_ArrayMemoryError", (MemoryError,), {})((4, 4), "float32"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
    ids=repr,
)
def test_what_python_and_numpy_raise_is_recognised_by_type(error):
    assert is_out_of_memory(error)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("out of memory"),
        RuntimeError("the cache is out of memory"),
        RuntimeError("CUDA error: an illegal memory access was encountered"),
        OSError(errno.ENOSPC, "No space left on device"),
        KeyboardInterrupt(),
        make("research.ResourceExhaustedError", "OOM when allocating tensor with shape[2]"),
        make("research.OutOfMemoryError", "CUDA out of memory. Tried to allocate 1 GiB"),
        make("tensorflow.python.framework.errors_impl.UnknownError", "ValueError: out of memory"),
        make("jax.errors.JaxRuntimeError", "INTERNAL: callback: ValueError: out of memory"),
        make("jax.errors.TracerArrayConversionError", "Out of memory allocating 8 bytes"),
        RuntimeError(LAYER.format("bad shape", "text='CUDA out of memory. Tried to allocate'")),
    ],
    ids=repr,
)
def test_what_only_sounds_like_it_is_not(error):
    assert not is_out_of_memory(error)


def test_an_error_raised_from_it_or_while_handling_it_is_recognised():
    assert is_out_of_memory(raised(ValueError("no batch"), cause=MemoryError()))
    assert is_out_of_memory(raised(ValueError("no batch"), context=MemoryError()))


def test_an_error_that_hides_it_on_purpose_is_not():
    assert not is_out_of_memory(raised(ValueError("no"), context=MemoryError(), is_hidden=True))


def test_what_keras_raises_in_its_place_is_recognised():
    """Of NumPy's error, raised in a layer, Keras keeps only the shape as text."""
    error = RuntimeError(LAYER.format((65536, 16384), "inputs=…"))
    error._keras_call_info_injected = True

    assert is_out_of_memory(raised(error, context=MemoryError(), is_hidden=True))


def test_errors_that_refer_to_each_other_come_to_an_end():
    first, second = ValueError("first"), ValueError("second")
    raised(first, context=second)
    raised(second, context=first)

    assert not is_out_of_memory(first)
