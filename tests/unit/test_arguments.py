"""What is wrong with an argument is said in one grammar, with what was received."""

import numpy as np
import pytest

from memfit.arguments import check_size_text, check_whole_number
from memfit.errors import InvalidSizeError, UsageError


@pytest.mark.parametrize("value", [1, 32, np.int64(7)])
def test_a_whole_number_is_returned_as_an_int(value):
    assert check_whole_number("size", value) == value
    assert type(check_whole_number("size", value)) is int


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "8", None, np.float32(2)])
def test_anything_else_is_refused_with_what_was_received(value):
    with pytest.raises(UsageError) as raised:
        check_whole_number("size", value)

    assert str(raised.value) == (
        f"`size` must be a whole number, 1 or more. Received: size={value!r}."
    )


def test_the_least_number_can_be_another():
    assert check_whole_number("seed", 0, least=0) == 0
    with pytest.raises(UsageError, match=r"`seed` must be a whole number, 0 or more"):
        check_whole_number("seed", -1, least=0)


def test_a_size_is_returned_in_bytes():
    assert check_size_text("budget", "2 MiB") == 2 * 2**20


def test_a_size_without_a_unit_is_refused_by_name():
    with pytest.raises(UsageError, match=r"`budget` must be text with a unit. Received: budget=4"):
        check_size_text("budget", 4)
    with pytest.raises(InvalidSizeError):
        check_size_text("budget", "4 gigs")
