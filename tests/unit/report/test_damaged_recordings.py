"""A damaged recording is read, diagnosed and shown as far as it goes: never with a traceback."""

import io
import json
import random

import pytest
from rich.console import Console

from conftest import TESTS
from memfit.cli import main
from memfit.diagnose.diagnosis import Run
from memfit.record.read_run import read_run
from memfit.report.run.html import render_html
from memfit.report.run.json import render_json
from memfit.report.run.text import render_text

RECORDINGS = sorted((TESTS / "recordings" / "format-1").iterdir())
NUMBERS = (0, -1, 1, 2**53, 2**62, 2**63 - 1, -(2**62), 10**40, 1e308, -1e308, 1e18, 5e-324, 3.5)
VALUES = (*NUMBERS, None, True, "", "x" * 1000, "\x1b[31m", "\u202e", [], {}, [[]], {"a": 1}, "NaN")
HOSTILE = "</script><script>alert(1)</script>"


class Damage:
    """Changes a recording in ways that differ by the seed."""

    def __init__(self, seed):
        self.draw = random.Random(seed)

    def copy(self, folder):
        """Returns a damaged copy of one of the recordings."""
        source = self.draw.choice(RECORDINGS)
        share = self.draw.choice([0.02, 0.2, 1.0])
        for path in source.glob("*.jsonl"):
            lines = [self.damage(line, share) for line in path.read_bytes().splitlines()]
            if self.draw.random() < 0.2:
                self.draw.shuffle(lines)
            (folder / path.name).write_bytes(b"\n".join(lines))
        return folder

    def damage(self, line, share):
        if self.draw.random() < 0.01:
            return self.flip_bytes(line)
        if self.draw.random() > share:
            return line
        return json.dumps(self.change(json.loads(line))).encode()

    def flip_bytes(self, line):
        changed = bytearray(line)
        for _ in range(3):
            changed[self.draw.randrange(len(changed))] = self.draw.randrange(256)
        return bytes(changed)

    def change(self, value):
        """Changes one value somewhere inside."""
        if isinstance(value, dict) and value:
            name = self.draw.choice(list(value))
            if self.draw.random() < 0.15:
                return {key: one for key, one in value.items() if key != name}
            return {**value, name: self.change(value[name])}
        if isinstance(value, list) and value:
            index = self.draw.randrange(len(value))
            return [*value[:index], self.change(value[index]), *value[index + 1 :]]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return self.draw.choice(NUMBERS if is_number else (*VALUES, HOSTILE))


def show_everything(folder):
    run = Run.of(read_run(folder))
    json.loads(render_json(run))
    text = io.StringIO()
    render_text(run, Console(file=text, width=80))
    assert "\x1b[31m" not in text.getvalue()
    assert HOSTILE not in render_html(run)


@pytest.mark.parametrize("seed", range(30))
def test_a_damaged_recording_is_shown_as_far_as_it_goes(tmp_path, seed):
    show_everything(Damage(seed).copy(tmp_path))


@pytest.mark.long
def test_two_thousand_damaged_recordings_are_shown_as_far_as_they_go(tmp_path):
    for seed in range(100, 2_100):
        folder = tmp_path / str(seed)
        folder.mkdir()
        show_everything(Damage(seed).copy(folder))


@pytest.mark.parametrize(
    "line",
    [b"[" * 200_000, b'{"kind":"sample","t_s":' + b"9" * 10_000_000, b"\x00" * 1_000_000],
    ids=["nested", "a number of 10 MB", "zeros"],
)
def test_a_monstrous_line_is_skipped_and_the_rest_is_shown(tmp_path, line):
    path = Damage(0).copy(tmp_path) / "supervisor.jsonl"
    path.write_bytes(line + b"\n" + path.read_bytes())

    show_everything(tmp_path)


def test_one_damaged_run_does_not_hide_the_others(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for seed in range(6):
        folder = tmp_path / "memfit-runs" / f"run-{seed}"
        folder.mkdir(parents=True)
        Damage(seed).copy(folder)

    code = main(["runs"])

    shown = capsys.readouterr().out
    assert code == 0
    assert [seed for seed in range(6) if f"run-{seed}" not in shown] == []


def test_a_link_in_a_run_folder_leads_to_no_other_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run, outside = tmp_path / "run", tmp_path / "outside"
    run.mkdir()
    Damage(0).copy(run)
    outside.write_text("untouched")
    (run / "report.html").symlink_to(outside)
    (run / "agent-1.jsonl").symlink_to(outside)

    code = main(["report", "run"])

    assert code == 0
    assert outside.read_text() == "untouched"
    assert (run / "report.html").read_text().startswith("<!doctype html>")
