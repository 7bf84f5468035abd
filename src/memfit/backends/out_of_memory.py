"""Whether an error says that memory ran out, in any framework.

Types are recognised by name and module, so nothing is imported. Text is read only of errors whose
type can mean this, and only the framework's own wording counts: a disk that is full is a
`ResourceExhaustedError` too. The messages are kept in `tests/recordings/out_of_memory.toml`.
"""

import errno
import re
from collections.abc import Iterator

from memfit.keras_private.layers import is_raised_anew

_TENSORFLOW_WORDING = {
    # Also raised for full disks, open files and long messages, so the type is not enough.
    # A `MemoryError` in a data pipeline's Python code arrives as text.
    "ResourceExhaustedError": r"OOM when allocating tensor|Out of memory while trying to allocate"
    r"|failed to allocate memory|\bMemoryError: ",
    # https://github.com/tensorflow/tensorflow/issues/7025
    "InternalError": r"Dst tensor is not initialized|CUDA_ERROR_OUT_OF_MEMORY"
    r"|CU(BLAS|DNN)_STATUS_ALLOC_FAILED|Out of memory while trying to allocate",
    # A constant, such as the zeros of Adam's slots, for which there is no room.
    "InvalidArgumentError": r"Cannot parse tensor from proto: ",
}
# XLA's error, under the names that it has had.
_JAX_TYPES = {"JaxRuntimeError", "XlaRuntimeError"}
# `RESOURCE_EXHAUSTED` is also said of the shared memory that one kernel may use.
_JAX_WORDING = re.compile(
    r"Out of memory (while trying to allocate|allocating) "
    r"|Failed to allocate request for "
    r"|Ran out of memory in memory space hbm"
    r"|CUDA_ERROR_OUT_OF_MEMORY|CU(BLAS|DNN)_STATUS_ALLOC_FAILED"
)
# Of an array that is made from a value, such as `jnp.zeros`: a plain `ValueError`.
_JAX_WORDING_OF_A_VALUE = re.compile(r"RESOURCE_EXHAUSTED: Out of memory allocating \d+ bytes")
_TORCH_WORDING = re.compile(
    r"DefaultCPUAllocator: (can't allocate|not enough) memory"
    r"|(CUDA|HIP|XPU) out of memory\. Tried to allocate"
    r"|MPS backend out of memory \("
    r"|(CUDA|HIP) error: out of memory"
    r"|CU(BLAS|DNN)_STATUS_ALLOC_FAILED"
    # oneDNN, when there is no room for its code or its scratchpad.
    r"|^could not create a primitive$"
)


def is_out_of_memory(error: BaseException) -> bool:
    """Returns whether `error`, or what it was raised from, says that memory ran out.

    Of the device or of the machine, in any framework, NumPy or Python itself.

    Example:
    >>> is_out_of_memory(MemoryError())
    True
    >>> is_out_of_memory(ValueError("out of memory"))
    False
    """
    return any(_says_so(one) for one in _and_its_reasons(error))


def _says_so(error: BaseException) -> bool:
    if isinstance(error, OSError):  # a process or a mapping that cannot be made
        return error.errno == errno.ENOMEM
    # NumPy's error and `std::bad_alloc` arrive as `MemoryError`.
    return isinstance(error, MemoryError) or any(
        recognise(error) for recognise in (_of_tensorflow, _of_jax, _of_torch)
    )


def _of_tensorflow(error: BaseException) -> bool:
    names = _type_names(error, "tensorflow") & _TENSORFLOW_WORDING.keys()
    return any(re.search(_TENSORFLOW_WORDING[name], _message(error)) for name in names)


def _of_jax(error: BaseException) -> bool:
    """Whether this is JAX's error, which may come late.

    An array that was being computed when memory ran out raises it when it is read, however much
    later; one computed from it says `INTERNAL` instead of `RESOURCE_EXHAUSTED`.
    """
    if type(error) is ValueError:
        return _JAX_WORDING_OF_A_VALUE.match(_message(error)) is not None
    kinds = _type_names(error, "jax") | _type_names(error, "jaxlib")
    return bool(kinds & _JAX_TYPES) and _JAX_WORDING.search(_message(error)) is not None


def _of_torch(error: BaseException) -> bool:
    """Whether this is torch's: a type of its own on a GPU, a `RuntimeError` on CPU and Apple's."""
    kinds = _type_names(error, "torch")
    if "OutOfMemoryError" in kinds:
        return True
    can_be = type(error) is RuntimeError or "AcceleratorError" in kinds
    return can_be and _TORCH_WORDING.search(_message(error)) is not None


def _type_names(error: BaseException, package: str) -> frozenset[str]:
    """Returns the names of the types of `error` that `package` defines."""
    kinds = (kind for kind in type(error).__mro__ if kind.__module__.split(".")[0] == package)
    return frozenset(kind.__name__ for kind in kinds)


def _message(error: BaseException) -> str:
    """Returns what `error` says, without the arguments of a layer that Keras adds to it."""
    return str(error).partition("\n\nArguments received by ")[0]


def _and_its_reasons(error: BaseException) -> Iterator[BaseException]:
    current: BaseException | None = error
    seen: set[int] = set()
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or _raised_while_handling(current)


def _raised_while_handling(error: BaseException) -> BaseException | None:
    # An error inside a layer is raised again by Keras, `from None`. Of one whose type takes more
    # than a text, as NumPy's does, nothing but this reference is left.
    is_kept = not error.__suppress_context__ or is_raised_anew(error)
    return error.__context__ if is_kept else None
