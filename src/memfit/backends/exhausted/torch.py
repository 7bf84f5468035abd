"""PyTorch: a type of its own on a GPU, a plain `RuntimeError` on the CPU and on Apple's."""

import re

from memfit.backends.exhausted import message, type_names

_WORDING = re.compile(
    r"DefaultCPUAllocator: (can't allocate|not enough) memory"
    r"|(CUDA|HIP|XPU) out of memory\. Tried to allocate"
    r"|MPS backend out of memory \("
    r"|(CUDA|HIP) error: out of memory"
    r"|CU(BLAS|DNN)_STATUS_ALLOC_FAILED"
)


def is_out_of_memory(error: BaseException) -> bool:
    """Returns whether `error` is how torch says that memory ran out."""
    kinds = type_names(error, "torch")
    if "OutOfMemoryError" in kinds:
        return True
    can_be = type(error) is RuntimeError or "AcceleratorError" in kinds
    return can_be and _WORDING.search(message(error)) is not None
