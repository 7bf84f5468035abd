"""JAX: XLA's error, under the names that it has had.

An array that was being computed when memory ran out raises this when it is read, however much
later; one computed from it says `INTERNAL` instead of `RESOURCE_EXHAUSTED`.
"""

import re

from memfit.backends.exhausted import message, type_names

_TYPES = {"JaxRuntimeError", "XlaRuntimeError"}
# `RESOURCE_EXHAUSTED` is also said of the shared memory that one kernel may use.
_WORDING = re.compile(
    r"Out of memory (while trying to allocate|allocating) "
    r"|Failed to allocate request for "
    r"|Ran out of memory in memory space hbm"
    r"|CUDA_ERROR_OUT_OF_MEMORY|CU(BLAS|DNN)_STATUS_ALLOC_FAILED"
)


# Of an array that is to be made from a value, such as `jnp.zeros`: a plain `ValueError`.
_OF_A_VALUE = re.compile(r"RESOURCE_EXHAUSTED: Out of memory allocating \d+ bytes")


def is_out_of_memory(error: BaseException) -> bool:
    """Returns whether `error` is how JAX says that memory ran out."""
    if type(error) is ValueError:
        return _OF_A_VALUE.match(message(error)) is not None
    kinds = type_names(error, "jax") | type_names(error, "jaxlib")
    return bool(kinds & _TYPES) and _WORDING.search(message(error)) is not None
