"""Some of the zoo under memfit, and a third with `make test-long`; `make zoo` runs all of it.

Two scripts run at a time, as CI has two cores. What a busy machine makes of twenty seconds is
judged once more by itself; `make zoo` counts the first.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest
from zoo.judge import helps, jobs, judge, row


pytestmark = pytest.mark.measures


@pytest.fixture(scope="module", params=["few", pytest.param("quick", marks=pytest.mark.long)])
def verdicts(request):
    """What memfit said, by kind of script."""
    entries = list(jobs(mark=request.param))
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda job: judge(*job), entries))
    for told in done:
        print(row(told))
    done = [told if is_good(told) else judge(*job) for job, told in zip(entries, done, strict=True)]
    return list(zip(entries, done, strict=True))


def is_good(told):
    return told.is_right and (told.has_line or told.kind != "leaking")


def of(kind, verdicts):
    return [told for (_, its_kind), told in verdicts if its_kind == kind]


def test_every_script_runs_under_memfit(verdicts):
    assert [told.name for _, told in verdicts if told.failed] == []


def test_the_right_cause_comes_first_in_19_of_20(verdicts):
    leaking = of("leaking", verdicts)
    wrong = [row(told) for told in leaking if not told.is_right]

    assert len(wrong) <= len(leaking) // 20, wrong


def test_the_line_is_right_in_9_of_10(verdicts):
    leaking = of("leaking", verdicts)
    wrong = [row(told) for told in leaking if not told.has_line]

    assert len(wrong) <= len(leaking) // 10, wrong


@pytest.mark.parametrize("kind", ["clean", "healthy"])
def test_nothing_is_found_where_nothing_is_wrong(kind, verdicts):
    assert [row(told) for told in of(kind, verdicts) if not told.is_right] == []


def test_a_statement_as_memfit_fixes_it_makes_the_growth_go_away(verdicts):
    mendable = [
        (entry, told)
        for (entry, kind), told in verdicts
        if kind == "leaking" and told.findings and told.findings[0]["after"] is not None
    ]
    assert mendable
    with ThreadPoolExecutor(2) as pool:
        helped = list(pool.map(lambda one: helps(*one) or helps(*one), mendable))

    assert [row(told) for (_, told), did in zip(mendable, helped, strict=True) if not did] == []
