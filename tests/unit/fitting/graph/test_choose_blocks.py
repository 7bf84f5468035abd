"""The cheapest blocks, against all that could be chosen."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.fitting.graph.blocks import GraphNode, Output, cut_into_blocks
from memfit.fitting.graph.choose_blocks import Block, choose_all, choose_blocks, peak_bytes


@st.composite
def block_lists(draw, largest=60, most=7):
    sizes = st.tuples(st.integers(0, largest), st.integers(0, largest), st.integers(0, 20))
    blocks = draw(st.lists(sizes, min_size=1, max_size=most))
    return [
        Block(f"block {at}", max(sizes[:2]), min(sizes[:2]), sizes[2])
        for at, sizes in enumerate(blocks)
    ]


@st.composite
def node_lists(draw):
    count = draw(st.integers(1, 12))
    return [
        GraphNode(
            f"layer {at}",
            draw(st.integers(0, 50)),
            (Output(draw(st.integers(0, 50)), draw(st.integers(at, count))),),
            draw(st.integers(0, 9)),
            can_repeat=draw(st.booleans()),
        )
        for at in range(count)
    ]


def every_choice(blocks):
    places = range(len(blocks))
    return itertools.chain.from_iterable(
        itertools.combinations(places, count) for count in range(len(blocks) + 1)
    )


@given(block_lists(), st.integers(1, 300))
def test_no_other_choice_is_cheaper_or_saves_what_this_one_cannot(blocks, need):
    costs = [
        sum(blocks[at].cost for at in chosen)
        for chosen in every_choice(blocks)
        if peak_bytes(blocks) - peak_bytes(blocks, chosen) >= need
    ]

    choice = choose_blocks(blocks, need)

    assert choice.is_enough == bool(costs)
    if costs:
        assert choice.cost == min(costs)
        assert choice.saved_bytes >= need


@given(block_lists())
def test_all_blocks_save_the_most(blocks):
    most = max(peak_bytes(blocks) - peak_bytes(blocks, chosen) for chosen in every_choice(blocks))

    assert choose_all(blocks).saved_bytes == most
    assert choose_blocks(blocks, 10**9).saved_bytes == most


@given(block_lists(largest=10**9, most=20), st.integers(1, 10**9), st.integers(1, 10**9))
def test_a_larger_need_never_costs_less(blocks, one, other):
    small, large = sorted((one, other))

    assert choose_blocks(blocks, small).cost <= choose_blocks(blocks, large).cost


@given(block_lists(largest=10**9, most=20), st.integers(1, 10**9))
def test_what_is_claimed_is_what_the_blocks_save(blocks, need):
    choice = choose_blocks(blocks, need)

    assert choice.saved_bytes == peak_bytes(blocks) - peak_bytes(blocks, choice.chosen)
    assert choice.is_enough == (choice.saved_bytes >= need)
    assert choice.is_enough or choice.chosen == choose_all(blocks).chosen


def test_the_last_block_is_never_recomputed():
    blocks = [Block("a", 100, 10, 1), Block("b", 100, 10, 1)]

    assert choose_all(blocks).chosen == (0,)


def test_two_hundred_different_blocks_are_chosen_in_a_moment():
    blocks = [Block(str(at), 10**7 + 9973 * at, 10**5 * (at % 7), at * at) for at in range(200)]

    choice = choose_blocks(blocks, 10**9)

    assert choice.is_enough
    assert choice.saved_bytes < 1.1 * 10**9


@given(node_lists())
def test_blocks_hold_every_node_once(graph_nodes):
    cuts = cut_into_blocks(graph_nodes)

    assert [cuts[0].first, *(cut.end for cut in cuts)] == [
        *(cut.first for cut in cuts),
        len(graph_nodes),
    ]
    for cut in cuts:
        inside = graph_nodes[cut.first : cut.end]
        assert cut.block.activation_bytes == sum(one.activation_bytes for one in inside)
        assert cut.block.cost == sum(one.cost for one in inside)
        if not all(one.can_repeat for one in inside):
            assert cut.block.boundary_bytes == cut.block.activation_bytes


def test_blocks_end_between_residual_blocks():
    """Three layers and the addition of what came in: inside, two tensors are read later."""
    graph_nodes = []
    for start in range(0, 32, 4):
        graph_nodes += [
            GraphNode("branch", 100, (Output(100, start + at + 1),), 1) for at in range(3)
        ]
        graph_nodes.append(GraphNode("add", 100, (Output(100, start + 7),), 1))

    cuts = cut_into_blocks(graph_nodes)

    assert {cut.end % 4 for cut in cuts} == {0}
    assert len(cuts) > 1


@pytest.mark.parametrize("count", [0, 1])
def test_a_model_too_short_to_cut_saves_nothing(count):
    blocks = [
        cut.block for cut in cut_into_blocks([GraphNode("dense", 9, (Output(9, 1),), 1)] * count)
    ]

    assert choose_all(blocks).saved_bytes == 0
