"""The memory that a user allows."""

import pytest

from memfit.budget import Budget
from memfit.errors import InvalidSizeError, UsageError


def test_a_budget_says_how_much_and_where():
    assert Budget.parse("4GB", None) == Budget(4_000_000_000, "host")
    assert Budget.parse(None, "512MiB") == Budget(512 * 2**20, "device")
    assert str(Budget.parse("4GB", None)) == "4.00 GB"


@pytest.mark.parametrize("given", [(None, None), ("4GB", "4GB")])
def test_one_of_two_budgets_is_given(given):
    with pytest.raises(UsageError, match=r"Give one of budget .* and device_budget"):
        Budget.parse(*given)


def test_a_budget_without_a_unit_is_refused():
    with pytest.raises(UsageError, match="`device_budget` must be text with a unit"):
        Budget.parse(None, 4_000_000_000)
    with pytest.raises(InvalidSizeError):
        Budget.parse("4", None)
