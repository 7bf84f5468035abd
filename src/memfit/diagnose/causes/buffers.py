"""Buffers of data pipelines that hold more than they need, found before they are full."""

from memfit.diagnose.causes.case import Case
from memfit.diagnose.causes.finding import Finding
from memfit.fixes.pipelines import CACHED_STAYS
from memfit.record.evidence import Buffer
from memfit.units import format_size

# Below this a buffer is nobody's problem.
_LEAST_BYTES = 50_000_000
# More batches than this in a queue never made a training faster.
_ENOUGH_BATCHES = 20
# A shuffle of single elements or a cache is worth its memory, up to this part of the limit.
_LARGE_SHARE = 0.25


def find_large_buffers(case: Case) -> list[Finding]:
    """Returns a finding for each buffer that is too large for what it does."""
    # Whenever it was: a buffer that was too large in one phase may be gone in the next.
    newest = case.newest_ever(Buffer, lambda one: (one.stage, one.file, one.line))
    findings = [_finding(case, one) for one in newest if _why(case, one)]
    return sorted(findings, key=lambda one: -int(one.evidence["full_bytes"] or 0))


def _full_bytes(buffer: Buffer) -> int:
    return max(buffer.full_bytes or 0, buffer.held_bytes)


def _why(case: Case, buffer: Buffer) -> str:
    """What is wrong with it; nothing if it is in good order."""
    full_bytes = _full_bytes(buffer)
    if buffer.stage == "cache" and buffer.after_repeat and case.growth is not None:
        return "cache() comes after repeat(): it stores every epoch again, without end"
    if full_bytes >= _LEAST_BYTES and (buffer.length or 0) > _ENOUGH_BATCHES:
        count, size = f"{buffer.length:,}", format_size(full_bytes)
        if buffer.stage == "shuffle" and buffer.of_batches:
            return f"shuffle({count}) comes after batch(): it holds {count} batches, {size}"
        if buffer.stage in _WORDS:
            return _WORDS[buffer.stage].format(count=count, size=size)
    if case.limit_bytes and full_bytes >= _LARGE_SHARE * case.limit_bytes:
        return f"The {buffer.stage} buffer holds {format_size(full_bytes)} when full"
    return ""


_WORDS = {
    "prefetch": "prefetch({count}) keeps {count} elements ready, {size}",
    "queue": "max_queue_size={count} keeps {count} batches ready, {size}",
}


_FIXES = {
    "cache": f"Cache first, then repeat: dataset.cache().repeat(). {CACHED_STAYS}",
    "shuffle": "Shuffle first, then batch: the buffer then holds single elements.",
    "prefetch": "Two batches ahead are enough: prefetch(2), or prefetch(tf.data.AUTOTUNE).",
    "queue": "A few batches ahead are enough: Keras's default is max_queue_size=10.",
}


def _finding(case: Case, buffer: Buffer) -> Finding:
    full_bytes = _full_bytes(buffer)
    is_full = buffer.held_bytes >= 0.95 * full_bytes
    so_far = "" if is_full else f" So far it holds {format_size(buffer.held_bytes)}."
    if buffer.after_repeat:
        so_far = f" So far it holds {format_size(buffer.held_bytes)}."
    rise, share = _growth_of(case, buffer)
    return Finding(
        code="buffer-too-large",
        message=f"{_why(case, buffer)}.{so_far}",
        confidence="certain",
        fix=_FIXES[buffer.stage],
        evidence={
            "stage": buffer.stage,
            "held_bytes": buffer.held_bytes,
            "full_bytes": full_bytes,
            "length": buffer.length,
        },
        file=buffer.file,
        line=buffer.line,
        before=buffer.statement,
        growth_bytes=rise or None,
        share=share,
    )


def _growth_of(case: Case, buffer: Buffer) -> tuple[int, float | None]:
    """By how much it grew with memory, and what part of the rate of growth that is."""
    if case.growth is None:
        return 0, None
    same = [
        one
        for one in case.recording.of(Buffer)
        if (one.stage, one.file, one.line) == (buffer.stage, buffer.file, buffer.line)
        and one.t_s >= case.growth.begin_t_s - 1
    ]
    if len(same) < 2 or same[-1].held_bytes <= same[0].held_bytes:
        return 0, None
    rise = same[-1].held_bytes - same[0].held_bytes
    rate = rise / max(same[-1].t_s - same[0].t_s, 1e-3)
    return rise, min(rate / case.growth.bytes_per_s, 1.0)
