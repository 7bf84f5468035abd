"""Torch's accelerators, through `torch.cuda` and its allocator's variable.

Torch always takes memory as it is needed. Not yet run on hardware.
"""

import os
import sys
from collections.abc import Callable, Sequence

from memfit.backends.accelerators import (
    AcceleratorSettings,
    Applied,
    refuse_undo,
    set_environment,
    tell_beyond,
)
from memfit.units import format_size

TITLE = "torch"
_EXPANDABLE = "expandable_segments:True"


def find() -> tuple[str, ...]:
    """Returns the GPUs that torch will use. Counts them without starting CUDA."""
    import torch

    return tuple(f"GPU:{index}" for index in range(torch.cuda.device_count()))


def is_too_late(settings: AcceleratorSettings) -> bool:
    """Whether CUDA is up and growth is asked for; a limit may be set at any time."""
    return bool(settings.on_demand) and _is_initialized()


def apply(settings: AcceleratorSettings, sizes_bytes: Sequence[int]) -> Applied:
    """Sets expandable segments, which leave fewer gaps, and the part of each device.

    Only the second starts CUDA: the variable is set by then.
    """
    texts: list[str] = []
    undos: list[Callable[[], None]] = []
    if settings.on_demand:
        undos.append(_set_expandable())
        texts.append(f"takes memory as it is needed, in expandable segments ({_EXPANDABLE})")
    if settings.on_demand is False:
        texts.append("takes memory as it is needed: it cannot preallocate")
    if settings.limit_bytes is not None:
        sizes = _sizes_bytes()
        undos.append(_set_fractions([min(settings.limit_bytes / size, 1.0) for size in sizes]))
        texts.append(f"takes at most {format_size(settings.limit_bytes)} of each GPU")
        texts.extend(filter(None, [tell_beyond(settings.limit_bytes, sizes)]))
    if settings.fraction is not None:
        undos.append(_set_fractions([settings.fraction] * len(_sizes_bytes())))
        texts.append(f"takes at most {settings.fraction:.0%} of each GPU")

    def undo() -> None:
        for one in undos:
            one()

    return Applied("torch " + "; ".join(texts), undo)


def _sizes_bytes() -> list[int]:
    import torch

    indexes = range(torch.cuda.device_count())
    return [torch.cuda.get_device_properties(index).total_memory for index in indexes]


def _set_expandable() -> Callable[[], None]:
    name = "PYTORCH_ALLOC_CONF" if "PYTORCH_ALLOC_CONF" in os.environ else "PYTORCH_CUDA_ALLOC_CONF"
    others = [
        one
        for one in os.environ.get(name, "").split(",")
        if one and not one.strip().startswith("expandable_segments")
    ]
    put_back = set_environment({name: ",".join([*others, _EXPANDABLE])})

    def undo() -> None:
        if _is_initialized():
            raise refuse_undo(TITLE, "CUDA has started, and its segments stay expandable")
        put_back()

    return undo


def _set_fractions(fractions: Sequence[float]) -> Callable[[], None]:
    import torch

    # Older versions cannot be asked; the whole device is their default.
    ask = getattr(torch.cuda, "get_per_process_memory_fraction", lambda _index: 1.0)
    before = [ask(index) for index in range(len(fractions))]
    for index, fraction in enumerate(fractions):
        torch.cuda.set_per_process_memory_fraction(fraction, index)

    def undo() -> None:
        for index, fraction in enumerate(before):
            torch.cuda.set_per_process_memory_fraction(float(fraction), index)

    return undo


def _is_initialized() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_initialized())
