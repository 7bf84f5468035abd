"""A tenth of the zoo under memfit; `make zoo` runs all of it.

Two scripts run at a time, as CI has two cores.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest
from zoo.judge import helps, jobs, judge, row


@pytest.fixture(scope="module")
def verdicts():
    """What memfit said, by kind of script."""
    entries = list(jobs(is_quick=True))
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda job: judge(*job), entries))
    for told in done:
        print(row(told))
    return list(zip(entries, done, strict=True))


def of(kind, verdicts):
    return [told for (_, its_kind), told in verdicts if its_kind == kind]


def test_every_script_runs_under_memfit(verdicts):
    assert [told.name for _, told in verdicts if told.failed] == []


def test_the_right_cause_comes_first_in_all_but_one(verdicts):
    """The aim over the whole zoo is 19 of 20; one of this tenth may be wrong on a busy machine."""
    wrong = [row(told) for told in of("leaking", verdicts) if not told.is_right]

    assert len(wrong) <= 1, wrong


def test_the_line_is_right_in_all_but_one(verdicts):
    """The aim over the whole zoo is 9 of 10."""
    wrong = [row(told) for told in of("leaking", verdicts) if not told.has_line]

    assert len(wrong) <= 1, wrong


@pytest.mark.parametrize("kind", ["clean", "healthy"])
def test_nothing_is_found_where_nothing_is_wrong(kind, verdicts):
    """What a busy machine makes of twenty seconds is judged once more; `make zoo` counts the first."""
    doubted = [job for job, told in verdicts if job[1] == kind and not told.is_right]

    wrong = [row(told) for told in (judge(*job) for job in doubted) if not told.is_right]

    assert wrong == []


def test_a_statement_as_memfit_mends_it_makes_the_growth_go_away(verdicts):
    mendable = [
        (entry, told)
        for (entry, kind), told in verdicts
        if kind == "leaking" and told.findings and told.findings[0]["after"] is not None
    ]
    assert mendable
    with ThreadPoolExecutor(2) as pool:
        helped = list(pool.map(lambda one: helps(*one), mendable))

    assert [row(told) for (_, told), did in zip(mendable, helped, strict=True) if not did] == []
