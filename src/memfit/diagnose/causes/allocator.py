"""Memory that the script has given back and the allocator keeps."""

import itertools

from memfit.diagnose.causes.case import Case
from memfit.diagnose.causes.finding import Finding
from memfit.measure.malloc import AllocatorMemory
from memfit.record.evidence import Holding, RemedyTrial
from memfit.record.samples import Sample
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
    readings = _readings(case)
    if len(readings) < 2 or _in_use_rise(readings) > _MOST_IN_USE_SHARE * case.risen_bytes:
        return []
    return _of_malloc(case, readings)


def find_retained_too(case: Case) -> list[Finding]:
    """Returns a finding if what malloc keeps is most of what grows, whatever else does."""
    readings = _readings(case)
    return _of_malloc(case, readings) if len(readings) >= 2 else []


def find_pool(case: Case) -> list[Finding]:
    """Returns a finding if what TensorFlow's pool keeps may be what grows."""
    return _of_pool(case, [pair for pair in case.malloc_samples() if pair[0].devices])


def _readings(case: Case) -> list[AllocatorMemory]:
    return [allocator for _, allocator in case.malloc_samples()]


def _of_malloc(case: Case, readings: list[AllocatorMemory]) -> list[Finding]:
    first, last = readings[0], readings[-1]
    kept_bytes = last.free_bytes - first.free_bytes
    freed_bytes = max(
        (
            one.before_bytes - one.after_bytes
            for one in case.recording.of(RemedyTrial)
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
        f" malloc_trim freed {format_size(freed_bytes)} when memfit tried it."
        if is_proven
        else " malloc_trim could not free it: small blocks still in use lie in between."
    )
    in_use = format_size(_in_use_rise(readings))
    kept = max(kept_bytes, 0) or freed_bytes
    return [
        _finding(
            case,
            message=(
                f"malloc keeps {format_size(kept)} more that the script has already freed; memory "
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


def _of_pool(case: Case, samples: list[tuple[Sample, AllocatorMemory]]) -> list[Finding]:
    """TensorFlow's pool takes large mappings and does not give them back."""
    if len(samples) < _FEWEST_SAMPLES:
        return []
    pools = [sample.devices[0] for sample, _ in samples]
    readings = [allocator for _, allocator in samples]
    half = len(samples) // 2
    # Tensors come and go; what counts is how few there are at times.
    least_before = min(one.in_use_bytes for one in pools[:half])
    least_now = min(one.in_use_bytes for one in pools[-half:])
    pool_bytes = readings[-1].mapped_bytes - least_now
    in_use_bytes = max(least_now - least_before, 0)
    heap_bytes = _heap(readings[-1]) - _heap(readings[0])
    kept_bytes = case.risen_bytes - in_use_bytes - max(heap_bytes, 0)
    least_bytes = max(_LEAST_BYTES, _LEAST_SHARE * case.risen_bytes)
    if not pools[-1].on_host or min(kept_bytes, pool_bytes) < least_bytes:
        return []
    if _num_mappings(readings) > _MOST_STEPS:  # large arrays of the script, one by one
        return []
    return [
        _finding(
            case,
            message=(
                f"TensorFlow's CPU pool takes {format_size(kept_bytes)} more while the tensors in "
                f"it grew by {format_size(in_use_bytes)}: tensors of new sizes do not fit into its "
                "free blocks."
            ),
            fix=(
                "Set TF_ONEDNN_USE_SYSTEM_ALLOCATOR=1 in the environment, or pad shapes to a few "
                "sizes. gc.collect, clear_session and malloc settings do not help."
            ),
            kept_bytes=kept_bytes,
            confidence="likely",
        )
    ]


def _num_mappings(readings: list[AllocatorMemory]) -> int:
    """How often malloc mapped more. The pool doubles its blocks, so it does so now and then."""
    mapped = [one.mapped_bytes for one in readings]
    return sum(after > before + _STEP_BYTES for before, after in itertools.pairwise(mapped))


def _heap(reading: AllocatorMemory) -> int:
    return reading.in_use_bytes - reading.mapped_bytes


def _in_use_rise(readings: list[AllocatorMemory]) -> int:
    return readings[-1].in_use_bytes - readings[0].in_use_bytes


def _finding(
    case: Case,
    *,
    message: str,
    fix: str,
    kept_bytes: int,
    confidence: str,
    pin: Holding | None = None,
) -> Finding:
    file, line = (pin.file, pin.line) if pin else case.growing_line()
    pinned = f" {pin.owner} keeps {pin.length:,} small objects in between." if pin else ""
    return Finding(
        code="allocator-retains",
        message=message + pinned,
        confidence=confidence,
        fix=fix,
        evidence={"kept_bytes": kept_bytes},
        file=file,
        line=line,
        before=pin.statement if pin else None,
        growth_bytes=kept_bytes,
        share=min(kept_bytes / max(case.risen_bytes, 1), 1.0),
    )
