"""Worker processes that each hold a copy of the data, or grow themselves."""

from memfit.diagnose.causes.case import Case
from memfit.diagnose.causes.finding import Finding
from memfit.record.evidence import Made
from memfit.record.samples import Sample
from memfit.units import format_size

_LEAST_BYTES = 16_000_000
_FEWEST_SAMPLES = 4


def find_workers(case: Case) -> list[Finding]:
    """Returns a finding if the processes below the script grow."""
    samples = [one for one in case.recording.outside if one.children]
    # What they share with nobody is read now and then; where it is, the rest tells nothing.
    exact = [one for one in samples if one.children_own_bytes is not None]
    samples = _while_all_live(exact or samples)
    if len(samples) < _FEWEST_SAMPLES:
        return []
    settled = samples[len(samples) // 5 :]
    rise = _own_bytes(settled[-1]) - _own_bytes(settled[0])
    peak = max(map(_own_bytes, settled))
    is_growing = rise >= _LEAST_BYTES and rise >= 0.3 * peak
    if not is_growing:
        return []
    total = case.risen_bytes if case.growth is not None else rise
    count = max(len(one.children or ()) for one in samples)
    makers = _makers(case)
    maker = makers[0] if makers else None
    file, line = (maker.file, maker.line) if maker else case.busiest_line()
    return [
        Finding(
            code="workers-copy",
            message=(
                f"{count} worker processes grew by {format_size(rise)} in total, to "
                f"{format_size(peak)} that they share with no other process."
            ),
            confidence="likely",
            fix=(
                "Keep the samples in one numpy array or a memory-mapped file instead of Python "
                "objects: reading an object in a forked worker writes its reference count and so "
                "copies its page. Workers should keep nothing between batches."
            ),
            evidence={"workers": count, "growth_bytes": rise, "own_bytes": peak},
            file=file,
            line=line,
            before=maker.statement if maker else None,
            growth_bytes=rise,
            share=min(rise / max(total, 1), 1.0),
        )
    ]


def _while_all_live(samples: list[Sample]) -> list[Sample]:
    """Leaves out the end, when one worker after another is gone."""
    count = max((len(one.children or ()) for one in samples), default=0)
    last = max(
        (at for at, one in enumerate(samples) if len(one.children or ()) == count), default=0
    )
    return samples[: last + 1]


def _makers(case: Case) -> list[Made]:
    return case.made("loader") or case.made("process")


def _own_bytes(sample: Sample) -> int:
    """What the workers do not share with the script."""
    if sample.children_own_bytes is not None:
        return sample.children_own_bytes
    return sample.children_held_bytes
