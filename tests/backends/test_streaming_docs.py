"""What docs/streaming.md shows can be typed."""

import re
import subprocess
import sys
from pathlib import Path

import memfit
from conftest import QUIET

TEXT = (Path(__file__).parents[2] / "docs" / "streaming.md").read_text()
CHECKS = """
assert len(data) == 20
assert sum(len(batch[1]) for batch in data) == 5_000
"""
EXAMPLES = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_the_examples_run_and_then_the_commands(tmp_path, monkeypatch):
    for name, value in {**QUIET, "KERAS_BACKEND": "jax"}.items():
        monkeypatch.setenv(name, value)
    script = tmp_path / "script.py"
    script.write_text("\n".join([*EXAMPLES, CHECKS]))
    commands = [line.split() for line in TEXT.splitlines() if line.startswith("memfit ")]
    assert len(commands) == 4

    runs = [["script.py"], *(["-m", *command] for command in commands)]
    printed = []
    for arguments in runs:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        printed.append(done.stdout)
    assert all(one in printed[0] for one in re.findall("prints `(.*?)`", TEXT))


def test_every_argument_of_stream_is_described():
    code = memfit.stream.__code__
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]

    assert [name for name in names if f"{name}=" not in TEXT] == []
