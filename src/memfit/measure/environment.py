"""Environment variables that bear on memory."""

import os
from collections.abc import Mapping

_PREFIXES = (
    "KERAS_BACKEND",
    "LD_PRELOAD",
    "MALLOC_",
    "PYTHONMALLOC",
    "PYTORCH_",
    "TF_CPU_",
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "TF_GPU_",
    "TF_MKL_",
    "TF_ONEDNN_",
    "TF_USE_LEGACY_KERAS",
    "TF_XLA_FLAGS",
    "XLA_",
)


def read_settings(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the environment variables that bear on memory."""
    return {
        name: value for name, value in sorted(environment.items()) if name.startswith(_PREFIXES)
    }
