"""Memory that the script has given back and the allocator keeps."""

import itertools

from memfit.diagnose.case import Case
from memfit.diagnose.finding import Finding
from memfit.record.entries import Holding, Sample, Trial
from memfit.units import format_size

_LEAST_SHARE = 0.5
_LEAST_BYTES = 8_000_000
_FEWEST_SAMPLES = 6
_MOST_STEPS = 6
_STEP_BYTES = 1_000_000
# So many small things that a script keeps can pin whole pages between them.
_MANY = 50
# With this little of the growth in use, nothing holds it.
_MOST_IN_USE_SHARE = 0.2


def find_retained(case: Case) -> list[Finding]:
    """Returns a finding if what malloc keeps grows and what is in use does not."""
    samples = _samples(case)
    if len(samples) < 2 or _in_use_rise(samples) > _MOST_IN_USE_SHARE * case.risen_bytes:
        return []
    return _of_malloc(case, samples)


def find_retained_too(case: Case) -> list[Finding]:
    """Returns a finding if what malloc keeps is most of what grows, whatever else does."""
    samples = _samples(case)
    return _of_malloc(case, samples) if len(samples) >= 2 else []


def find_pool(case: Case) -> list[Finding]:
    """Returns a finding if what TensorFlow's pool keeps may be what grows."""
    samples = _samples(case)
    return _of_pool(case, samples) if len(samples) >= 2 else []


def _samples(case: Case) -> list[Sample]:
    if case.growth is None:
        return []
    return [
        one
        for one in case.recording.inside
        if one.allocator is not None and case.growth.begin_t_s - 1 <= one.t_s <= case.growth.end_t_s
    ]


def _of_malloc(case: Case, samples: list[Sample]) -> list[Finding]:
    first, last = samples[0].allocator, samples[-1].allocator
    if first is None or last is None:
        return []
    kept_bytes = last.free_bytes - first.free_bytes
    freed_bytes = max(
        (
            one.before_bytes - one.after_bytes
            for one in case.recording.of(Trial)
            if one.remedy == "trim"
        ),
        default=0,
    )
    risen_bytes = case.risen_bytes
    if max(kept_bytes, freed_bytes) < max(_LEAST_BYTES, _LEAST_SHARE * risen_bytes):
        return []
    is_proven = freed_bytes >= _LEAST_BYTES
    pin = _find_pin(case)
    proof = (
        f" malloc_trim gave back {format_size(freed_bytes)} when memfit tried it."
        if is_proven
        else " malloc_trim did not give it back: small blocks in use lie in between."
    )
    in_use = format_size(last.in_use_bytes - first.in_use_bytes)
    kept = max(kept_bytes, 0) or freed_bytes
    return [
        _finding(
            case,
            message=(
                f"malloc keeps {format_size(kept)} more that the script has given back; what is "
                f"in use rose by {in_use}.{proof}"
            ),
            fix=(
                "Run with MALLOC_ARENA_MAX=2 (fewer heaps for threads) and "
                "MALLOC_TRIM_THRESHOLD_=65536, or use one pool of threads for the whole run."
            ),
            kept_bytes=kept,
            confidence="certain" if is_proven else "likely",
            pin=pin,
        )
    ]


def _find_pin(case: Case) -> Holding | None:
    """The name that keeps the most small things, if one does: they lie between what is free."""
    kept = [
        one
        for one in case.newest(Holding, lambda one: one.owner)
        if one.length - one.length_before >= _MANY and one.line is not None
    ]
    return max(kept, key=lambda one: one.length - one.length_before, default=None)


def _of_pool(case: Case, samples: list[Sample]) -> list[Finding]:
    """TensorFlow's pool takes large mappings and does not give them back."""
    samples = [one for one in samples if one.devices]
    if len(samples) < _FEWEST_SAMPLES:
        return []
    first, last = samples[0], samples[-1]
    half = len(samples) // 2
    # Tensors come and go; what counts is how few there are at times.
    least_before = min(one.devices[0].in_use_bytes for one in samples[:half])
    least_now = min(one.devices[0].in_use_bytes for one in samples[-half:])
    mapped_bytes = last.allocator.mapped_bytes if last.allocator is not None else 0
    pool_bytes = mapped_bytes - least_now
    in_use_bytes = max(least_now - least_before, 0)
    heap_bytes = _heap(last) - _heap(first)
    kept_bytes = case.risen_bytes - in_use_bytes - max(heap_bytes, 0)
    least_bytes = max(_LEAST_BYTES, _LEAST_SHARE * case.risen_bytes)
    if not last.devices[0].on_host or min(kept_bytes, pool_bytes) < least_bytes:
        return []
    if _num_mappings(samples) > _MOST_STEPS:  # large arrays of the script, one by one
        return []
    return [
        _finding(
            case,
            message=(
                f"TensorFlow's pool for the CPU touches {format_size(kept_bytes)} more while the "
                f"tensors in it rose by {format_size(in_use_bytes)}: pieces of other sizes do not "
                "fit into what is free."
            ),
            fix=(
                "Run with TF_ONEDNN_USE_SYSTEM_ALLOCATOR=1 in the environment, or pad shapes to a "
                "few sizes. gc, clear_session and malloc settings do not help."
            ),
            kept_bytes=kept_bytes,
            confidence="likely",
        )
    ]


def _num_mappings(samples: list[Sample]) -> int:
    """How often malloc mapped more. The pool doubles its blocks, so it does so now and then."""
    mapped = [one.allocator.mapped_bytes for one in samples if one.allocator is not None]
    return sum(after > before + _STEP_BYTES for before, after in itertools.pairwise(mapped))


def _heap(sample: Sample) -> int:
    allocator = sample.allocator
    return allocator.in_use_bytes - allocator.mapped_bytes if allocator is not None else 0


def _in_use_rise(samples: list[Sample]) -> int:
    known = [one.allocator.in_use_bytes for one in samples if one.allocator is not None]
    return known[-1] - known[0]


def _finding(
    case: Case,
    *,
    message: str,
    fix: str,
    kept_bytes: int,
    confidence: str,
    pin: Holding | None = None,
) -> Finding:
    line = (pin.file, pin.line) if pin else case.growing_line()
    pinned = f" {pin.owner} keeps {pin.length:,} small things in between." if pin else ""
    return Finding(
        code="allocator-retains",
        message=message + pinned,
        confidence=confidence,
        fix=fix,
        evidence={"kept_bytes": kept_bytes},
        file=line[0] if line else None,
        line=line[1] if line else None,
        before=pin.statement if pin else None,
        growth_bytes=kept_bytes,
        share=min(kept_bytes / max(case.risen_bytes, 1), 1.0),
    )
