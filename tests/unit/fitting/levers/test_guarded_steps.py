from memfit.fitting.levers.guarded_steps import MicroBatchSize


def count(size, number, num_samples=100):
    return [size.now for _ in range(number) if size.count(num_samples)]


def test_a_failure_halves_what_was_run():
    size = MicroBatchSize(1000, calm_batches=3)

    size.shrink(100)
    assert size.now == 50
    size.shrink(100)
    assert size.now == 25


def test_micro_batches_grow_back_to_where_they_began():
    size = MicroBatchSize(40, calm_batches=3)
    size.shrink(100)
    size.shrink(100)

    assert count(size, 9) == [20, 40]
    assert size.now == 40


def test_micro_batches_that_hold_the_batch_are_the_largest():
    size = MicroBatchSize(1000, calm_batches=1)
    size.shrink(100)

    assert count(size, 5) == [1000]


def test_growing_that_fails_is_tried_again_half_as_often():
    size = MicroBatchSize(64, calm_batches=2)
    size.shrink(64)

    assert count(size, 2) == [64]
    size.shrink(64)
    assert count(size, 3) == []
    assert count(size, 1) == [64]


def test_a_micro_batch_has_one_sample_at_least():
    size = MicroBatchSize(1, calm_batches=1)

    size.shrink(1)

    assert size.now == 1
