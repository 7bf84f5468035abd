import doctest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import memfit.units
from memfit.errors import InvalidSizeError, MemfitError
from memfit.units import format_duration, format_size, parse_size


@pytest.mark.parametrize(
    ("unit", "unit_bytes"),
    [
        ("B", 1),
        ("kB", 10**3),
        ("MB", 10**6),
        ("GB", 10**9),
        ("TB", 10**12),
        ("KiB", 2**10),
        ("MiB", 2**20),
        ("GiB", 2**30),
        ("TiB", 2**40),
    ],
)
def test_each_unit_means_its_own_number_of_bytes(unit, unit_bytes):
    assert parse_size(f"3{unit}") == 3 * unit_bytes


@pytest.mark.parametrize("text", ["8GB", "8 GB", " 8  gb ", "8Gb", "8.0 GB", "008GB"])
def test_case_spaces_and_zeros_do_not_change_a_size(text):
    assert parse_size(text) == 8 * 10**9


@pytest.mark.parametrize(
    "text",
    [
        "8 gigs",
        "-1GB",
        "",
        " ",
        "0GB",
        "0.4B",
        "GB",
        "8",
        "1 2GB",
        "1e3MB",
        "1,5GB",
        ".5GB",
        "8GB 1",
        "8GB\x00",
        "infGB",
        "½GB",
    ],
)
def test_an_unreadable_size_is_refused_and_shown_as_received(text):
    with pytest.raises(InvalidSizeError) as raised:
        parse_size(text)

    assert f"Received: {text!r}." in str(raised.value)


def test_a_refused_size_says_what_was_expected_and_how_to_write_it():
    with pytest.raises(InvalidSizeError) as raised:
        parse_size("8 gigs")

    assert str(raised.value) == (
        "Cannot read a memory size. Received: '8 gigs'. Expected a number above zero and a unit, "
        "one of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB. "
        'Write it like "512MiB" or "8GB".'
    )


@pytest.mark.parametrize("kind", [MemfitError, ValueError])
def test_a_refused_size_is_caught_as_memfits_own_and_as_pythons_error(kind):
    with pytest.raises(kind):
        parse_size("8 gigs")


@settings(deadline=None)
@given(st.integers(1, 10**18))
def test_a_decimal_fraction_is_read_to_the_byte(size_bytes):
    whole, thousandths = divmod(size_bytes, 1000)

    assert parse_size(f"{whole}.{thousandths:03} kB") == size_bytes


def test_a_number_too_large_for_a_float_is_still_read():
    assert parse_size("1" + "0" * 400 + " GB") == 10**409


@settings(deadline=None)
@given(st.integers(1, 10**15))
def test_what_is_shown_reads_back_within_half_a_percent(size_bytes):
    shown = format_size(size_bytes)

    assert parse_size(shown) == pytest.approx(size_bytes, rel=0.005)


@settings(deadline=None)
@given(st.floats(1e3, 9.99e14))
def test_a_size_is_shown_with_three_figures(size_bytes):
    number, _, _ = format_size(size_bytes).partition(" ")

    assert len(number.replace(".", "")) == 3


@pytest.mark.parametrize(
    ("size_bytes", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (999.6, "1.00 kB"),
        (9_994, "9.99 kB"),
        (9_996, "10.0 kB"),
        (99_960, "100 kB"),
        (999_400, "999 kB"),
        (999_600, "1.00 MB"),
        (1_310_000_000, "1.31 GB"),
        (-2_500_000, "-2.50 MB"),
        (12_345 * 10**12, "12345 TB"),
    ],
)
def test_a_size_is_shown_in_the_largest_unit_that_leaves_a_whole_one(size_bytes, shown):
    assert format_size(size_bytes) == shown


@pytest.mark.parametrize(
    ("duration_s", "shown"),
    [
        (0, "0 ms"),
        (0.9872, "987 ms"),
        (0.9996, "1.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (105, "1 min 45 s"),
        (3599.6, "1 h 0 min"),
        (3600 + 23 * 60 + 29, "1 h 23 min"),
        (3600 + 23 * 60 + 45, "1 h 24 min"),
        (3600 + 59 * 60 + 45, "2 h 0 min"),
        (86400 + 3600 * 5 + 59, "1 d 5 h"),
    ],
)
def test_a_duration_is_shown_in_the_units_a_user_would_use(duration_s, shown):
    assert format_duration(duration_s) == shown


def test_the_examples_in_the_docstrings_hold():
    results = doctest.testmod(memfit.units)

    assert results == doctest.TestResults(failed=0, attempted=4)
