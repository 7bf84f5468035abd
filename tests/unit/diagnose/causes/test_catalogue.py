import pytest

from memfit.diagnose.causes.catalogue import CATALOGUE, cause_of

each_row = pytest.mark.parametrize("row", CATALOGUE.values(), ids=lambda row: row.code)


@each_row
def test_a_row_names_only_codes_that_have_rows(row):
    assert {*row.brings_along, *row.related} <= set(CATALOGUE) - {row.code}


@each_row
def test_codes_are_related_both_ways(row):
    assert all(row.code in cause_of(code).related for code in row.related)


def test_a_code_without_a_row_has_nothing_special():
    row = cause_of("no-such-code")

    assert (row.brings_along, row.related, row.verdict) == ((), (), None)
