import pytest

from memfit.measure.pressure import Pressure, parse_pressure, read_pressure

# Of a machine that swaps, Linux 6.1.
PRESSURE = """some avg10=12.50 avg60=4.05 avg300=1.02 total=81246123
full avg10=9.75 avg60=3.10 avg300=0.80 total=62011907
"""


def test_the_ten_second_figures_are_read():
    assert parse_pressure(PRESSURE) == Pressure(some_percent=12.5, full_percent=9.75)


def test_without_a_full_line_nothing_waited_in_full():
    some_only = PRESSURE.splitlines()[0]

    assert parse_pressure(some_only) == Pressure(some_percent=12.5, full_percent=0.0)


def test_pressure_is_read_from_a_file(tmp_path):
    path = tmp_path / "memory.pressure"
    path.write_text(PRESSURE)

    assert read_pressure(path) == Pressure(some_percent=12.5, full_percent=9.75)


@pytest.mark.parametrize("text", ["", "\n", "full avg10=1.00 total=5\n", "some avg10=much\n"])
def test_a_file_without_the_figure_is_unknown(tmp_path, text):
    path = tmp_path / "memory.pressure"
    path.write_text(text)

    assert read_pressure(path) is None


def test_a_kernel_without_pressure_is_unknown(tmp_path):
    assert read_pressure(tmp_path / "pressure" / "memory") is None
