import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import types
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfit.measure.process import ProcessMemory
from memfit.messages import printable
from memfit.record.evidence import Holding, Retraced
from memfit.record.jsonl import SCHEMAS, Writer, decode, encode
from memfit.record.read_run import FileReader
from memfit.record.samples import End, Exit, Header, Mark, Sample, Software, Trouble

# What Python makes of a file name that is not UTF-8: its script's, for one.
UNDECODED = st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF)
SHORT_TEXT = st.text(max_size=5).map(printable)
PLAIN = {
    bool: st.booleans(),
    # Sizes and times of some machine.
    int: st.integers(-(2**53), 2**53),
    float: st.floats(-(2**53), 2**53).map(lambda number: round(number, 12)),
    str: st.text(st.characters(codec="utf-8") | UNDECODED, max_size=20).map(printable),
    dict[str, str]: st.dictionaries(SHORT_TEXT, SHORT_TEXT, max_size=3),
}
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
FIELD_NAMES = st.sampled_from(
    sorted({name for schema in SCHEMAS for name in schema.__struct_fields__})
)

WRITE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from memfit.record.samples import Mark
from memfit.record.jsonl import Writer
writer = Writer(Path(sys.argv[1]))
for number in (1, 2, 3):
    writer.append(Mark(float(number), "begin", "epoch", number))
os.kill(os.getpid(), signal.SIGKILL)
"""
# A file may have 100 bytes for a while; a mark takes some 60.
WRITE_BEYOND_A_LIMIT = """
import resource, sys
from pathlib import Path
from memfit.record.samples import Mark
from memfit.record.jsonl import Writer
writer = Writer(Path(sys.argv[1]))
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, most))
for number in (1, 2, 3):
    writer.append(Mark(float(number), "begin", "epoch", number))
print(writer.error.errno)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
for number in (4, 5):
    writer.append(Mark(float(number), "begin", "epoch", number))
"""
HAS_LIMITS = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals and limits")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agent-7.jsonl"


@pytest.fixture
def small_disk(tmp_path):
    """A real file system of two pages; removed afterwards."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    command = [mount or "mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(folder)]
    if mount is None or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs root: a small file system cannot be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)  # also if a test left it open


def entries():
    """Entries that nobody thought of: of every kind, every field with any value it may take."""
    return st.one_of([values(schema) for schema in SCHEMAS])


def values(hint):
    if hint in PLAIN:
        return PLAIN[hint]
    if isinstance(hint, types.UnionType):
        arms = [arm for arm in hint.__args__ if arm is not types.NoneType]
        return st.one_of(st.none(), *map(values, arms))
    if typing.get_origin(hint) is tuple:
        return st.lists(values(hint.__args__[0]), max_size=3).map(tuple)
    if typing.get_origin(hint) is dict:
        key, value = typing.get_args(hint)
        return st.dictionaries(values(key), values(value))
    fields = typing.get_type_hints(hint)
    names = getattr(hint, "__struct_fields__", fields)  # a dataclass has its hints alone
    return st.builds(hint, **{name: values(fields[name]) for name in names})


@settings(deadline=None)
@given(entries())
def test_every_entry_is_read_back_as_it_was_written(entry):
    assert decode(encode(entry)) == entry


@settings(deadline=None)
@given(entries())
def test_every_entry_is_one_whole_line(entry):
    line = encode(entry)

    assert line.index(b"\n") == len(line) - 1


def test_what_has_its_default_is_left_out():
    sample = Sample(t_s=1.5, pid=7, process=ProcessMemory(rss_bytes=4096))

    assert encode(sample) == b'{"kind":"sample","t_s":1.5,"pid":7,"process":{"rss_bytes":4096}}\n'


def test_zero_is_not_unknown_and_so_not_left_out():
    line = encode(Sample(t_s=1.5, pid=7, process=ProcessMemory(rss_bytes=1, swap_bytes=0)))

    assert json.loads(line)["process"] == {"rss_bytes": 1, "swap_bytes": 0}


def test_children_that_nobody_looked_for_differ_from_no_children():
    looked = Sample(t_s=1.5, pid=7, process=ProcessMemory(rss_bytes=1), children=())

    assert decode(encode(looked)).children == ()


def test_a_field_that_a_later_version_added_is_ignored():
    line = (
        b'{"kind":"sample","t_s":1.5,"pid":7,"mood":"fine",'
        b'"process":{"rss_bytes":4096,"huge_bytes":{"2MB":[1]}}}'
    )

    assert decode(line) == Sample(t_s=1.5, pid=7, process=ProcessMemory(rss_bytes=4096))


@pytest.mark.parametrize(
    ("line", "entry"),
    [
        (
            b'{"kind":"header","format":1,"role":"agent","pid":7,"t_s":1.5,"wall_time_s":1e9}',
            Header(format=1, role="agent", pid=7, t_s=1.5, wall_time_s=1e9),
        ),
        (
            b'{"kind":"software","t_s":1.5,"backend":"jax","versions":{"jax":"0.10.2"}}',
            Software(t_s=1.5, backend="jax", versions={"jax": "0.10.2"}),
        ),
        (
            b'{"kind":"sample","t_s":1.5,"pid":7,"process":{"rss_bytes":4096}}',
            Sample(t_s=1.5, pid=7, process=ProcessMemory(rss_bytes=4096)),
        ),
        (
            b'{"kind":"mark","t_s":1.5,"event":"begin","phase":"fit","number":1}',
            Mark(t_s=1.5, event="begin", phase="fit", number=1),
        ),
        (
            b'{"kind":"holding","t_s":1.5,"since_t_s":1.0,"owner":"kept","container":"list",'
            b'"length_before":1,"length":9,"growth_bytes":8,"item_kind":"array"}',
            Holding(1.5, 1.0, "kept", "list", 1, 9, 8, "array"),
        ),
        (
            b'{"kind":"retraced","t_s":1.5,"since_t_s":1.0,"name":"step","file":"a.py","line":8,'
            b'"traces_before":1,"traces":9,"functions":1}',
            Retraced(1.5, 1.0, "step", "a.py", 8, 1, 9, 1),
        ),
        (
            b'{"kind":"trouble","t_s":1.5,"where":"sample","message":"OSError"}',
            Trouble(t_s=1.5, where="sample", message="OSError"),
        ),
        (b'{"kind":"end","t_s":1.5,"probe_s":0.25}', End(t_s=1.5, probe_s=0.25)),
        (b'{"kind":"exit","t_s":1.5,"code":0}', Exit(t_s=1.5, code=0)),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, bytes) else "",
)
def test_the_shortest_line_of_format_1_is_read_for_good(line, entry):
    assert decode(line) == entry


def test_a_whole_number_is_read_where_a_fraction_is_expected():
    assert decode(b'{"kind":"end","t_s":3,"probe_s":0}') == End(t_s=3.0, probe_s=0.0)


def test_a_long_number_inside_a_text_is_no_number():
    trouble = Trouble(t_s=1.5, where="sample", message="id " + "7" * 40)

    assert decode(encode(trouble)) == trouble


def test_values_of_classes_of_their_own_are_written_as_built_ins():
    class Loud(str):
        __slots__ = ()

        def __str__(self):
            raise AssertionError("code of the user ran")

    assert decode(encode(Trouble(1.5, Loud("sample"), "x"))) == Trouble(1.5, "sample", "x")


def test_each_kind_has_a_name_of_its_own():
    kinds = [schema.__struct_config__.tag for schema in SCHEMAS]

    assert len(kinds) == len(set(kinds)) == 18


def test_a_kind_that_a_later_version_added_is_no_damage():
    assert decode(b'{"kind":"census","t_s":1.5}') is None


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"\xff\xfe\xfd",
        b"\x00" * 40,
        b"null",
        b"[]",
        b"{}",
        b'{"kind":null}',
        b'{"kind":[]}',
        b'{"kind":{}}',
        b'{"kind":"mark"}',
        b'{"kind":"mark","t_s":"now","event":"begin","phase":"fit","number":1}',
        b'{"kind":"mark","t_s":true,"event":"begin","phase":"fit","number":1}',
        b'{"kind":"mark","t_s":null,"event":"begin","phase":"fit","number":1}',
        b'{"kind":"sample","t_s":1,"pid":7,"process":null}',
        b'{"kind":"sample","t_s":1,"pid":7,"process":4096}',
        b'{"kind":"sample","t_s":1,"pid":7,"process":{}}',
        b'{"kind":"sample","t_s":1,"pid":7,"process":{"rss_bytes":1},"children":5}',
        b'{"kind":"mark","t_s":1,"event":"beg{"kind":"mark","t_s":2}',
        b'{"kind":"mark","t_s":NaN,"event":"begin","phase":"fit","number":1}',
        b'{"kind":"mark","t_s":1e999,"event":"begin","phase":"fit","number":1}',
        b'{"kind":"mark","t_s":1,"event":"begin","phase":"fit","number":1.5}',
        b'{"kind":"mark","t_s":1,"event":"begin","phase":"fit","number":"1"}',
        b'{"kind":"mark","t_s":1,"event":7,"phase":"fit","number":1}',
        b'{"kind":"mark","t_s":1,"event":"begin","phase":"fit","number":' + b"9" * 40 + b"}",
        b'{"kind":"mark","t_s":1,"event":"begin","phase":"fit","number":' + b"9" * 9000 + b"}",
        b'{"kind":"mark","t_s":NaN,"event":"\\udcff","phase":"fit","number":1}',
        b'{"kind":"end","t_s":1,"probe_s":1,"later":' + b"[" * 9000 + b"]" * 9000 + b"}",
        b'{"kind":"look","t_s":1,"level":"names","cost_s":1,"numbers":{"model":"many"}}',
        b'{"kind":"software","t_s":1,"backend":"jax","versions":[]}',
    ],
)
def test_a_damaged_line_is_reported_as_one(line):
    with pytest.raises(ValueError):  # noqa: PT011  # json's own messages differ
        decode(line)


@settings(deadline=None)
@given(
    kind=st.sampled_from(["header", "software", "sample", "mark", "trouble", "end", "exit", "new"]),
    fields=st.dictionaries(FIELD_NAMES, JSON_VALUES),
)
def test_whatever_json_a_line_holds_it_is_an_entry_or_unknown_or_damaged(kind, fields):
    line = json.dumps({**fields, "kind": kind}).encode()

    try:
        entry = decode(line)
    except ValueError:
        return

    assert entry is None or isinstance(entry.t_s, int | float)


def test_a_mark_of_many_calls_is_written_with_their_number():
    line = encode(Mark(t_s=1.5, event="end", phase="predict", number=2, calls=300))

    assert json.loads(line)["calls"] == 300


def mark(number):
    return Mark(t_s=float(number), event="begin", phase="epoch", number=number)


def numbers(path):
    return [entry.number for entry in FileReader(path).read_new()]


def test_a_line_is_whole_on_disk_as_soon_as_it_is_appended(path):
    writer = Writer(path)

    seen = []
    for number in (1, 2):
        writer.append(mark(number))
        seen.append(path.read_bytes())
    writer.close()

    assert seen == [encode(mark(1)), encode(mark(1)) + encode(mark(2))]


@HAS_LIMITS
def test_a_kill_loses_nothing_that_was_appended(path):
    killed = subprocess.run([sys.executable, "-c", WRITE_AND_DIE, path], check=False)

    assert killed.returncode == -signal.SIGKILL
    assert numbers(path) == [1, 2, 3]


def test_a_file_that_exists_is_never_overwritten(path):
    path.write_text("mine")

    with pytest.raises(FileExistsError):
        Writer(path)

    assert path.read_text() == "mine"


@HAS_LIMITS
def test_a_failed_write_is_kept_as_the_error(path):
    told = subprocess.run(
        [sys.executable, "-c", WRITE_BEYOND_A_LIMIT, path], capture_output=True, check=True
    ).stdout

    assert int(told) == errno.EFBIG


@HAS_LIMITS
def test_a_line_cut_by_a_failed_write_costs_none_of_those_after_it(path):
    subprocess.run(
        [sys.executable, "-c", WRITE_BEYOND_A_LIMIT, path], capture_output=True, check=True
    )

    reader = FileReader(path)

    assert [entry.number for entry in reader.read_new()] == [1, 4, 5]
    assert reader.skipped_lines == 1


def test_lines_are_written_again_once_a_full_disk_has_room(small_disk):
    (small_disk / "other").write_bytes(b"x" * 4096)
    writer = Writer(small_disk / "agent-7.jsonl")
    for number in range(200):
        writer.append(mark(number))
    failed_with = writer.error.errno
    (small_disk / "other").unlink()

    writer.append(mark(1000))
    writer.close()

    assert failed_with == errno.ENOSPC
    assert numbers(small_disk / "agent-7.jsonl")[-1] == 1000


def test_a_writer_that_succeeds_has_no_error(path):
    writer = Writer(path)

    writer.append(mark(1))
    writer.close()

    assert writer.error is None


def test_what_comes_after_the_end_is_dropped(path):
    writer = Writer(path)
    writer.append(mark(1))
    writer.close()

    writer.append(mark(2))
    writer.close()

    assert numbers(path) == [1]


def test_a_line_never_lands_in_a_file_that_took_over_the_descriptor(tmp_path):
    writer = Writer(tmp_path / "recording.jsonl")
    writer.append(End(1.0, 0.0))
    script_file = os.open(tmp_path / "of-the-script", os.O_CREAT | os.O_WRONLY)
    os.dup2(script_file, writer._descriptor)

    writer.append(End(2.0, 0.0))
    writer.close()
    os.write(script_file, b"its own")

    assert (tmp_path / "of-the-script").read_bytes() == b"its own"
    assert (tmp_path / "recording.jsonl").read_bytes().count(b"\n") == 2


def test_a_recording_goes_on_after_the_script_closed_all_descriptors(tmp_path):
    code = (
        "import os, pathlib; from memfit.record.jsonl import Writer; "
        "from memfit.record.samples import End; "
        "writer = Writer(pathlib.Path('recording.jsonl')); os.closerange(3, 4096); "
        "writer.append(End(1.0, 0.0)); assert writer.error is None"
    )

    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)

    assert (tmp_path / "recording.jsonl").read_bytes().count(b"\n") == 1


def test_a_recording_is_for_its_user_alone(tmp_path):
    Writer(tmp_path / "recording.jsonl").close()

    assert (tmp_path / "recording.jsonl").stat().st_mode & 0o777 == 0o600


def test_text_that_controls_a_terminal_is_spelt_out_when_it_is_read():
    line = encode(Trouble(1.0, "\x1b[2J\u202egnp.exe", "two\nlines"))

    entry = decode(line)

    assert entry.where == "\\x1b[2J\\u202egnp.exe"
    assert entry.message == "two\nlines"


def test_no_line_lands_in_a_file_that_took_the_place_of_the_recording(tmp_path):
    writer = Writer(tmp_path / "recording.jsonl")
    (tmp_path / "mine.csv").write_text("its own")
    os.close(writer._descriptor)
    (tmp_path / "recording.jsonl").unlink()
    (tmp_path / "recording.jsonl").symlink_to(tmp_path / "mine.csv")

    writer.append(End(1.0, 0.0))

    assert isinstance(writer.error, OSError)
    assert (tmp_path / "mine.csv").read_text() == "its own"
