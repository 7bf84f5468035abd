import dataclasses
import json
import types
import typing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memfit.measure.process import ProcessMemory
from memfit.record.evidence import (
    End,
    Entry,
    Exit,
    Header,
    Holding,
    Mark,
    Retraced,
    Sample,
    Software,
    Trouble,
)
from memfit.record.jsonl import decode, encode

# What Python makes of a file name that is not UTF-8: its script's, for one.
UNDECODED = st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF)
PLAIN = {
    bool: st.booleans(),
    int: st.integers(-(2**63), 2**63),
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(st.characters(codec="utf-8") | UNDECODED, max_size=20),
    dict[str, str]: st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
}
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
FIELD_NAMES = st.sampled_from(
    sorted({field.name for kind in typing.get_args(Entry) for field in dataclasses.fields(kind)})
)


def entries():
    """Entries that nobody thought of: of every kind, every field with any value it may take."""
    return st.one_of([values(kind) for kind in typing.get_args(Entry)])


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
    names = [field.name for field in dataclasses.fields(hint)]
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
    ],
)
def test_a_damaged_line_is_told_as_one(line):
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
