from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfit.messages import printable
from memfit.record.jsonl import encode
from memfit.record.read_run import FileReader, read_run
from memfit.record.samples import FORMAT, Header, Mark

HEADER = Header(format=FORMAT, role="agent", pid=7, t_s=1.0, wall_time_s=1e9)
FIRST = Mark(t_s=2.0, event="begin", phase="fit", number=1)
SECOND = Mark(t_s=3.0, event="end", phase="fit", number=1)
INTEGERS = st.integers(-(2**53), 2**53)  # larger ones are no count of anything
MARKS = st.builds(
    Mark,
    t_s=st.floats(0, 1e6).map(lambda t_s: round(t_s, 9)),
    event=st.text(max_size=9).map(printable),
    phase=st.text().map(printable),
    number=INTEGERS,
)
NOISE = st.binary(min_size=1, max_size=60).filter(lambda line: line.strip() and b"\n" not in line)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agent-7.jsonl"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """A file that each example overwrites."""
    return tmp_path_factory.mktemp("run") / "agent-7.jsonl"


@settings(deadline=None)
@given(st.lists(MARKS, min_size=1, max_size=4), st.data())
def test_a_file_cut_at_any_byte_loses_at_most_its_last_line(scratch, written, data):
    text = b"".join(map(encode, written))
    cut = data.draw(st.integers(0, len(text)))
    scratch.write_bytes(text[:cut])

    reader = FileReader(scratch)

    assert reader.read_new() == written[: text[:cut].count(b"\n")]
    assert reader.skipped_lines == 0


@settings(deadline=None)
@given(st.lists(NOISE, min_size=1, max_size=4))
def test_noise_between_two_lines_is_skipped_and_counted(scratch, noise):
    scratch.write_bytes(b"\n".join([encode(FIRST).strip(), *noise, encode(SECOND)]))

    reader = FileReader(scratch)

    assert reader.read_new() == [FIRST, SECOND]
    assert reader.skipped_lines == len(noise)


@pytest.mark.parametrize(("text", "is_cut"), [(b"", False), (b'{"ki', True), (b"{}\n", False)])
def test_a_last_line_without_its_end_is_reported_as_cut(path, text, is_cut):
    path.write_bytes(text)
    reader = FileReader(path)

    reader.read_new()

    assert reader.is_cut is is_cut


def test_what_was_read_before_is_not_read_again(path):
    path.write_bytes(encode(FIRST))
    reader = FileReader(path)
    reader.read_new()

    with path.open("ab") as file:
        file.write(encode(SECOND))

    assert reader.read_new() == [SECOND]


def test_a_line_that_was_cut_is_read_once_it_is_whole(path):
    line = encode(FIRST)
    path.write_bytes(line[:20])
    reader = FileReader(path)
    seen_cut = reader.read_new()

    path.write_bytes(line)

    assert [seen_cut, reader.read_new()] == [[], [FIRST]]
    assert not reader.is_cut


def test_a_file_that_is_not_there_yet_has_no_entries(path):
    assert FileReader(path).read_new() == []


def test_an_empty_file_is_a_recording_of_nothing(path):
    path.touch()

    recording = read_run(path.parent)

    assert (recording.header, recording.inside, recording.notes) == (None, (), ())


def test_a_run_is_named_after_its_folder(path):
    path.touch()

    assert read_run(path.parent).name == path.parent.name


def test_a_cut_last_line_is_normal_and_not_noted(path):
    path.write_bytes(encode(HEADER) + encode(FIRST) + encode(SECOND)[:-5])

    recording = read_run(path.parent)

    assert recording.marks == (FIRST,)
    assert recording.notes == ()


def test_one_damaged_line_is_said_and_the_rest_is_read(path):
    path.write_bytes(encode(HEADER) + encode(FIRST) + b"\x00\x00\x00\n" + encode(SECOND))

    recording = read_run(path.parent)

    assert recording.marks == (FIRST, SECOND)
    assert recording.notes == ("agent-7.jsonl: 1 damaged line was skipped; the rest was read.",)


def test_several_damaged_lines_are_counted_in_the_note(path):
    path.write_bytes(encode(HEADER) + b"{\n\n}\n" + encode(FIRST))

    assert read_run(path.parent).notes == (
        "agent-7.jsonl: 2 damaged lines were skipped; the rest was read.",
    )


def test_a_missing_first_line_is_said(path):
    path.write_bytes(encode(FIRST) + encode(SECOND))

    assert read_run(path.parent).notes == (
        "agent-7.jsonl: its first line is missing or damaged; the rest was read.",
    )


def test_a_later_format_is_read_as_far_as_it_is_known_and_said(path):
    path.write_bytes(
        b'{"kind":"header","format":7,"role":"agent","pid":7,"t_s":1.0,"wall_time_s":1e9,"x":1}\n'
        b'{"kind":"census","t_s":1.5,"objects":[]}\n' + encode(FIRST)
    )

    recording = read_run(path.parent)

    assert recording.marks == (FIRST,)
    assert recording.notes == (
        "agent-7.jsonl: written by a newer memfit (format 7; this version reads up to 1). "
        "What it cannot read is left out.",
    )


def test_of_very_many_samples_most_are_left_out_and_it_is_said(tmp_path):
    from memfit.measure.process import ProcessMemory
    from memfit.record.samples import Sample

    samples = [Sample(float(at), 7, ProcessMemory(at)) for at in range(25_000)]
    text = b"".join(map(encode, [HEADER, FIRST, *samples, SECOND]))
    (tmp_path / "agent-7.jsonl").write_bytes(text)

    recording = read_run(tmp_path)

    times = [sample.t_s for sample in recording.inside]
    assert 8_000 < len(times) < 10_002
    assert (times[0], times[-1]) == (0.0, 24_999.0)
    assert recording.marks == (FIRST, SECOND)
    assert recording.notes == (
        f"agent-7.jsonl: {25_000 - len(times):,} samples left out, evenly spaced, "
        "because the run is long.",
    )


@pytest.mark.parametrize(
    "run",
    sorted((Path(__file__).parents[2] / "recordings" / "format-1").iterdir()),
    ids=lambda run: run.name,
)
def test_every_line_of_older_recordings_matches_its_schema(run):
    assert read_run(run).notes == ()


def test_a_line_that_does_not_match_its_schema_is_skipped_and_said(path):
    wrong = b'{"kind":"mark","t_s":2.5,"event":"begin","phase":"fit","number":"one"}\n'
    path.write_bytes(encode(HEADER) + encode(FIRST) + wrong + encode(SECOND))

    recording = read_run(path.parent)

    assert recording.marks == (FIRST, SECOND)
    assert recording.notes == ("agent-7.jsonl: 1 damaged line was skipped; the rest was read.",)
