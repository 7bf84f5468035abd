"""Some of the zoo under memfit, shortened, and a third with `make test-long`; `make zoo` runs it all.

What a busy machine makes of twenty seconds is judged once more; `make zoo` counts the first.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest
from zoo.judge import AT_A_TIME, helps, jobs, judge, row

LEAKING = [entry for entry, _ in jobs(mark="few", kinds=("leaking",))]
HEALTHY = [entry for entry, _ in jobs(mark="few", kinds=("healthy",))]


def name_of(entry):
    return f"{entry['name']}-{entry['backend']}"


def judged(entry, kind, *, is_short=False):
    told = judge(entry, kind, is_short=is_short)
    return told if is_good(told) else judge(entry, kind, is_short=is_short)


def is_good(told):
    return told.is_right and (told.has_line or told.kind != "leaking")


def can_be_fixed(told):
    return bool(told.findings) and told.findings[0]["after"] is not None


@pytest.mark.parametrize("entry", LEAKING, ids=name_of)
def test_the_cause_and_its_line_are_named(entry):
    told = judged(entry, "leaking", is_short=True)

    assert is_good(told), row(told)
    if entry.get("fixed"):
        assert can_be_fixed(told), row(told)
        assert any(helps(entry, told, is_short=True) for _ in range(2)), row(told)


@pytest.mark.parametrize("entry", HEALTHY, ids=name_of)
def test_nothing_is_found_where_nothing_is_wrong(entry):
    told = judged(entry, "healthy", is_short=True)

    assert told.is_right, row(told)


@pytest.fixture(scope="module")
def verdicts():
    """What memfit said of a third of the zoo."""
    entries = list(jobs(mark="quick"))
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        done = list(pool.map(lambda job: judged(*job), entries))
    for told in done:
        print(row(told))
    return list(zip(entries, done, strict=True))


def of(kind, verdicts):
    return [told for (_, its_kind), told in verdicts if its_kind == kind]


@pytest.mark.long
def test_every_script_runs_under_memfit(verdicts):
    assert [told.name for _, told in verdicts if told.failed] == []


@pytest.mark.long
def test_the_right_cause_comes_first_in_19_of_20(verdicts):
    leaking = of("leaking", verdicts)
    wrong = [row(told) for told in leaking if not told.is_right]

    assert len(wrong) <= len(leaking) // 20, wrong


@pytest.mark.long
def test_the_line_is_right_in_9_of_10(verdicts):
    leaking = of("leaking", verdicts)
    wrong = [row(told) for told in leaking if not told.has_line]

    assert len(wrong) <= len(leaking) // 10, wrong


@pytest.mark.long
@pytest.mark.parametrize("kind", ["clean", "healthy"])
def test_a_third_of_the_zoo_is_silent_where_nothing_is_wrong(kind, verdicts):
    assert [row(told) for told in of(kind, verdicts) if not told.is_right] == []


@pytest.mark.long
def test_a_statement_as_memfit_fixes_it_makes_the_growth_go_away(verdicts):
    fixable = [
        (entry, told)
        for (entry, kind), told in verdicts
        if kind == "leaking" and can_be_fixed(told)
    ]
    assert fixable
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        helped = list(pool.map(lambda one: helps(*one) or helps(*one), fixable))

    assert [row(told) for (_, told), did in zip(fixable, helped, strict=True) if not did] == []
