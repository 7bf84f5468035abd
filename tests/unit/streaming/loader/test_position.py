"""Where a stream stands after what was done with it."""

from memfit.streaming.loader.position import PassTracker, Position


def run(progress, number, *, length=10, ahead=0, closed=True):
    """A pass that gives some batches."""
    current = progress.begin(length, ahead, None)
    current.given = number
    current.is_open = not closed
    return current


def test_after_a_whole_pass_comes_the_next_epoch():
    progress = PassTracker()

    run(progress, 10)

    assert progress.position == progress.upcoming == Position(1, 0)


def test_a_look_at_one_batch_does_not_count():
    progress = PassTracker()

    run(progress, 1)

    assert progress.position == progress.upcoming == Position(0, 0)


def test_a_pass_that_was_left_can_be_saved_but_the_next_is_a_new_epoch():
    progress = PassTracker()

    run(progress, 4)

    assert progress.position == Position(0, 4)
    assert progress.upcoming == Position(1, 0)


def test_during_a_pass_the_batch_in_hand_counts():
    progress = PassTracker()

    run(progress, 1, closed=False)

    assert progress.position == Position(0, 1)


def test_what_waits_for_an_accelerator_does_not_count():
    progress = PassTracker()

    run(progress, 4, ahead=1, closed=False)

    assert progress.position == Position(0, 3)


def test_the_last_batch_counts_when_the_pass_has_ended():
    progress = PassTracker()
    current = run(progress, 10, ahead=1, closed=False)
    assert progress.position == Position(0, 9)

    current.is_open = False

    assert progress.position == Position(1, 0)


def test_when_keras_built_the_model_on_some_batches_they_come_again():
    progress = PassTracker()
    progress.move_to(Position(3, 7))
    run(progress, 2)

    progress.take_back()

    assert progress.position == progress.upcoming == Position(3, 7)


def test_a_restored_pass_ends_with_its_epoch():
    progress = PassTracker()
    progress.move_to(Position(3, 7))

    run(progress, 3)

    assert progress.position == Position(4, 0)
