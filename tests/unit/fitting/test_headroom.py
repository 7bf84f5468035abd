"""What a budget leaves for a step."""

from memfit.fitting.headroom import Headroom

MB = 1_000_000


def test_room_is_left_for_queues_copies_and_what_comes_and_goes():
    headroom = Headroom(
        budget_bytes=1000 * MB, idle_bytes=500 * MB, data_bytes=50 * MB, queued_bytes=30 * MB
    )

    assert headroom.step_bytes == (1000 - 50 - 30 - 35) * MB
    assert headroom.step_bytes < headroom.safe_bytes < headroom.hard_bytes == (1000 - 50 - 30) * MB


def test_the_smallest_budget_would_be_enough_for_its_step():
    headroom = Headroom(
        budget_bytes=600 * MB, idle_bytes=500 * MB, data_bytes=20 * MB, queued_bytes=15 * MB
    )

    least = headroom.smallest_budget(900 * MB)

    enough = Headroom(
        budget_bytes=least, idle_bytes=500 * MB, data_bytes=20 * MB, queued_bytes=15 * MB
    )
    assert enough.step_bytes >= 900 * MB
    assert least < 1.1 * 900 * MB
