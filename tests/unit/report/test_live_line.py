import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfit.diagnose.growth.growth import Growth
from memfit.measure.limits import Limit
from memfit.record.samples import StepProgress
from memfit.report.live_line import LiveStatus, format_status

GROWTH = Growth(
    bytes_per_s=1e6,
    bytes_per_epoch=None,
    bytes_per_step=2e5,
    low_share=0.9,
    high_share=1.1,
    begin_t_s=0.0,
    end_t_s=60.0,
    num_intervals=6,
    unit="interval",
)
FULL = LiveStatus(
    rss_bytes=1_310_000_000,
    peak_bytes=1_500_000_000,
    limit=Limit(8 * 10**9, "cgroup v2"),
    growth=GROWTH,
    progress=StepProgress(epoch=3, epochs=20, step=120, steps=400, total_steps=920),
)
PARTS = [
    "memfit 1.31 GB",
    "peak 1.50 GB",
    "limit 8.00 GB",
    "+1.00 MB/s",
    "epoch 3/20",
    "step 120/400",
]


def test_all_that_is_known_is_shown_where_there_is_room():
    assert format_status(FULL, width=120) == " · ".join(PARTS)


@pytest.mark.parametrize("shown", range(1, len(PARTS) + 1))
def test_the_least_useful_is_left_out_first_as_a_whole(shown):
    wanted = " · ".join(PARTS[:shown])

    too_narrow_for_more = len(wanted) + (1 if shown < len(PARTS) else 0)

    assert format_status(FULL, width=too_narrow_for_more) == wanted


@settings(deadline=None)
@given(st.integers(0, 200))
def test_the_line_is_never_wider_than_the_terminal(width):
    assert len(format_status(FULL, width)) <= width


def test_the_first_part_is_cut_where_even_that_has_no_room():
    assert format_status(FULL, width=11) == "memfit 1.31"


def test_what_is_not_known_is_not_shown():
    status = LiveStatus(rss_bytes=5_000_000, peak_bytes=6_000_000)

    assert format_status(status, width=80) == "memfit 5.00 MB · peak 6.00 MB"


@pytest.mark.parametrize(
    ("progress", "shown"),
    [
        (StepProgress(), []),
        (StepProgress(epoch=3), ["epoch 3"]),
        (StepProgress(epoch=3, epochs=20, step=120), ["epoch 3/20", "step 120"]),
        (StepProgress(total_steps=1234, updates=7, calls=9), ["step 1,234"]),
        (StepProgress(updates=7, calls=9), ["step 7"]),
        (StepProgress(calls=9), ["step 9"]),
        (StepProgress(updates=21, calls=1200), ["step 1,200"]),  # updates while it was traced
    ],
)
def test_progress_is_epochs_where_there_are_epochs_and_steps_otherwise(progress, shown):
    status = LiveStatus(rss_bytes=5_000_000, peak_bytes=6_000_000, progress=progress)

    parts = format_status(status, width=80).split(" · ")

    assert parts[2:] == shown
