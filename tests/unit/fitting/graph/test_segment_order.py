from memfit.fitting.graph.segment_order import Call, assign_segments


def norm(read, made):
    return Call((read,), (made,), needs_batch=True)


def test_a_model_that_needs_no_whole_batch_is_one_segment():
    assert assign_segments([Call((0,), (1,)), Call((1,), (2,))]) == (0, 0)


def test_each_look_at_the_batch_begins_a_segment():
    calls = [Call((0,), (1,)), norm(1, 2), Call((2,), (3,)), norm(3, 4)]

    assert assign_segments(calls) == (0, 1, 1, 2)


def test_looks_side_by_side_share_a_segment():
    calls = [Call((0,), (1,)), norm(1, 2), norm(1, 3), Call((2, 3), (4,))]

    assert assign_segments(calls) == (0, 1, 1, 1)


def test_a_short_branch_waits_for_the_long_one():
    long = [Call((0,), (1,)), norm(1, 2), norm(2, 3)]
    short = [Call((0,), (4,)), norm(4, 5)]

    segments = assign_segments([*long, *short, Call((3, 5), (6,))])

    assert segments[3:] == (1, 2, 2)


def test_an_output_in_the_middle_is_made_as_soon_as_it_can_be():
    calls = [Call((0,), (1,)), Call((1,), (9,)), norm(1, 2), norm(2, 3)]

    assert assign_segments(calls)[1] == 0
