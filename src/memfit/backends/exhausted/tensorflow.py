"""TensorFlow: `ResourceExhaustedError`, and errors that only look like something else."""

import re

from memfit.backends.exhausted import message, type_names

_WORDING = {
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


def is_out_of_memory(error: BaseException) -> bool:
    """Returns whether `error` is how TensorFlow says that memory ran out."""
    wordings = [_WORDING[name] for name in type_names(error, "tensorflow") if name in _WORDING]
    return any(re.search(wording, message(error)) for wording in wordings)
