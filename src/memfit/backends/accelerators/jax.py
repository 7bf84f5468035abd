"""JAX's accelerators, through the environment that XLA reads when it starts.

Only NVIDIA and AMD devices have these settings. Not yet run on hardware.
"""

import importlib.metadata
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from memfit.backends.accelerators import (
    AcceleratorSettings,
    Applied,
    refuse_undo,
    refuse_unknown_size,
    set_environment,
)
from memfit.backends.devices.jax import is_initialized
from memfit.errors import UsageError
from memfit.units import format_size

TITLE = "JAX"
_PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
_ALLOCATOR = "XLA_PYTHON_CLIENT_ALLOCATOR"
# The newer name is not known to older versions, and both together are an error to newer ones.
_FRACTION, _NEWER_FRACTION = "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_CLIENT_MEM_FRACTION"
device_folder = Path("/dev")
_DEVICE_FILES = {"cuda": ("nvidia[0-9]*", "dxg"), "rocm": ("kfd",)}


def find() -> tuple[str, ...]:
    """Returns the GPUs that JAX will use.

    Before its start JAX cannot be asked, so they are found as it would: by the plugins that are
    installed and the device files of the system.
    """
    if is_initialized():
        devices = sys.modules["jax"].local_devices()
        return tuple(f"GPU:{one.id}" for one in devices if one.platform in ("gpu", "cuda", "rocm"))
    config = getattr(sys.modules.get("jax"), "config", None)
    platforms = getattr(config, "jax_platforms", None) or os.environ.get("JAX_PLATFORMS", "")
    if platforms in ("cpu", "tpu") or os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return ()
    plugins = {one.name for one in importlib.metadata.entry_points(group="jax_plugins")}
    files = [
        file
        for kind, patterns in _DEVICE_FILES.items()
        if any(kind in plugin for plugin in plugins)
        for pattern in patterns
        for file in sorted(device_folder.glob(pattern))
    ]
    return tuple(f"GPU:{at}" for at in range(len(files)))


def is_too_late(settings: AcceleratorSettings) -> bool:
    """Whether JAX has started: it reads its environment once."""
    return is_initialized()


def apply(settings: AcceleratorSettings, sizes_bytes: Sequence[int]) -> Applied:
    """Sets the variables for preallocation and for the part of each device."""
    fraction = settings.fraction
    if settings.limit_bytes is not None:
        if not sizes_bytes:
            asked = f"at most {format_size(settings.limit_bytes)}"
            raise refuse_unknown_size(TITLE, asked, "a part of the device, preallocate=0.5")
        # The same part holds for all devices: of the largest it is the limit.
        fraction = min(settings.limit_bytes / max(sizes_bytes), 1.0)
    variables = {}
    if settings.on_demand is not None:
        variables[_PREALLOCATE] = "false" if settings.on_demand else "true"
    if fraction is not None:
        if os.environ.get(_ALLOCATOR, "").lower() == "platform":
            raise UsageError(
                f"JAX ignores every limit with {_ALLOCATOR}=platform, which is set. "
                "Unset it, or leave out limit and preallocate."
            )
        name = _NEWER_FRACTION if _NEWER_FRACTION in os.environ else _FRACTION
        variables[name] = f"{math.floor(fraction * 10_000) / 10_000:.4f}"
    put_back = set_environment(variables)

    def undo() -> None:
        if is_initialized():
            raise refuse_undo(TITLE, "JAX has started and has read its environment")
        put_back()

    set_to = ", ".join(f"{name}={value}" for name, value in variables.items())
    return Applied(f"JAX takes {_in_words(settings, fraction)} ({set_to})", undo)


def _in_words(settings: AcceleratorSettings, fraction: float | None) -> str:
    if fraction is None:
        return "memory as it is needed" if settings.on_demand else "75% of each GPU at the start"
    how = "as it is needed" if settings.on_demand else "at the start"
    return f"at most {fraction:.0%} of each GPU, {how}"
