"""A walk over the user's objects runs none of their code."""

import sys
import types

import pytest

from conftest import SCRIPTS
from memfit.agent.growing_names import GrowingNames
from memfit.agent.remedy_trials import try_collect
from memfit.heap.census import take_census
from memfit.heap.describe import plain_size_bytes, things_in
from memfit.slots import attributes_of, key_text


@pytest.fixture(scope="module")
def spies():
    """The script's objects, in a module of the user's."""
    sys.path.insert(0, str(SCRIPTS))
    import spies

    yield spies
    sys.path.remove(str(SCRIPTS))
    for name in ("spies", "lazy"):
        del sys.modules[name]


@pytest.fixture
def calls(spies):
    spies.calls.clear()
    yield spies.calls
    spies.watching = False


def test_looking_for_what_grows_calls_nothing_of_the_user(spies, calls):
    names = GrowingNames()
    found = []
    for number in range(8):
        spies.watching = False
        for each in range(20):
            spies.grow(20 * number + each)
        spies.watching = True
        found = names.find_grown(number, most_s=5.0, roots=take_census().roots)

    ran, owners = dict(calls), {holding.owner for holding in found}
    assert not ran
    assert {"own of Holder", "kept['dicts'] (global of spies.py)"} <= owners


def test_describing_what_is_in_containers_calls_nothing_of_the_user(spies, calls):
    spies.grow(0)
    spies.watching = True
    things = [thing for each in spies.kept.values() for thing in things_in(each)]
    sizes = [plain_size_bytes(each) for each in (*spies.kept.values(), *spies.large)]
    try_collect()

    ran = dict(calls)
    assert not ran
    assert any(thing.kind == "array" and thing.size_bytes == 400_000 for thing in things)
    assert all(size > 0 for size in sizes)


def test_what_a_namespace_holds_is_found():
    state = types.SimpleNamespace(losses=[1.0] * 30)

    assert attributes_of(state) == {"losses": [1.0] * 30}


def test_a_key_that_is_cut_says_so():
    assert key_text("a" * 40) == repr("a" * 40)
    assert key_text("a" * 41) == repr("a" * 40) + "…"
