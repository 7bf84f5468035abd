"""One script of examples/seeds under `memfit run`: how it is run, and what is read from it."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fit import join, limited_group

from memfit.diagnose.growth.phases import find_phases
from memfit.diagnose.growth.series import total_series
from memfit.record.read_run import read_run

BACKENDS = ("tensorflow", "jax", "torch")
VARIANTS = ("as_given", "by_hand", "with_memfit")
SEEDS = Path(__file__).parents[1] / "examples" / "seeds"
# More than any script should take; the machine is safe from one that takes more.
LIMIT_BYTES = 8_000_000_000
TIMEOUT_S = 400.0
# Notes about the machine, not about the script.
_NOT_CAUSES = ("killed", "near-limit")
_LOSS = re.compile(r"^final loss (\S+)$", re.MULTILINE)
_ERROR = re.compile(r"^(\w+(?:Error|Exception)): (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Example:
    """An entry of `seeds.toml`; its fields are told there."""

    name: str
    seed: str
    given: str
    shows: str
    backends: tuple[str, ...]
    also: tuple[str, ...] = ()
    alone: bool = False
    fails: dict[str, str] | None = None

    @property
    def scripts(self) -> tuple[str, ...]:
        """All its scripts."""
        return (*VARIANTS, *self.also)

    def needs_tensorflow(self, script: str) -> bool:
        """Whether a script is written for TensorFlow alone: it imports it at its top."""
        text = (SEEDS / self.name / f"{script}.py").read_text()
        return "\nimport tensorflow" in text


@dataclass(frozen=True, slots=True)
class Ran:
    """What one script did.

    Attributes:
        seconds: From start to end, imports included.
        fit_s: Time inside `fit`.
        peak_bytes: The most RSS of its processes.
        growth: In MB an epoch: "0" if memory is steady, "?" if that cannot be said.
        verdict: memfit's.
        findings: Codes, first the most important; notes in brackets.
        loss: What it printed.
        error: The name of the error that ended it, if one did.
        levels: The least memory held in each `fit`, in order.
        stdout: All that it printed.
        stderr: The end of what it complained of.
    """

    seconds: float
    fit_s: float = 0.0
    peak_bytes: int = 0
    growth: str = "?"
    verdict: str = "failed"
    findings: str = ""
    loss: float | None = None
    error: str = ""
    levels: tuple[int, ...] = ()
    stdout: str = ""
    stderr: str = ""


def load_examples() -> list[Example]:
    """Returns what `seeds.toml` lists."""
    listed = tomllib.loads((SEEDS / "seeds.toml").read_text())["example"]
    return [
        Example(**{key: tuple(one) if isinstance(one, list) else one for key, one in entry.items()})
        for entry in listed
    ]


def prepare() -> None:
    """Writes the data, unless it is there."""
    if not (SEEDS / "data" / "digits.npy").exists():
        subprocess.run([sys.executable, str(SEEDS / "prepare.py")], check=True)


@dataclass(frozen=True, slots=True)
class Runner:
    """Runs scripts; with a folder, what is kept there from earlier is not run again.

    Attributes:
        keep: The folder, or `None`.
    """

    keep: Path | None = None

    def __call__(self, script: Path, backend: str, arguments: Sequence[str] = ()) -> Ran:
        """Returns what a script did under memfit."""
        if self.keep is None:
            return run_script(script, backend, arguments)
        kept = (
            self.keep / f"{'-'.join((script.parent.name, script.stem, backend, *arguments))}.json"
        )
        if kept.exists():
            return Ran(**json.loads(kept.read_text()))
        ran = run_script(script, backend, arguments)
        self.keep.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(asdict(ran)))
        return ran


def run_script(script: Path, backend: str, arguments: Sequence[str] = ()) -> Ran:
    """Returns what a script did under memfit, in a process and a control group of its own."""
    with tempfile.TemporaryDirectory() as scratch, limited_group(LIMIT_BYTES) as group:
        out, result = Path(scratch) / "run", Path(scratch) / "result.json"
        options = ["--quiet", "--out", str(out), "--json", str(result)]
        begun_s = time.monotonic()
        try:
            done = subprocess.run(
                [sys.executable, "-m", "memfit", "run", *options, str(script), *arguments],
                cwd=scratch,
                env={
                    **os.environ,
                    "KERAS_BACKEND": backend,
                    "OMP_NUM_THREADS": "1",  # two scripts share the cores
                    "TF_CPP_MIN_LOG_LEVEL": "3",
                    "XDG_CACHE_HOME": scratch,  # where memfit would remember an earlier run
                },
                capture_output=True,
                check=False,
                text=True,
                timeout=TIMEOUT_S,
                preexec_fn=None if group is None else lambda: join(group),
            )
        except subprocess.TimeoutExpired:
            return Ran(TIMEOUT_S, error="timeout")
        seconds = time.monotonic() - begun_s
        errors = _ERROR.findall(done.stderr)
        error = (errors[-1][0] if errors else f"exit {done.returncode}") if done.returncode else ""
        told = {"stdout": done.stdout, "stderr": done.stderr[-500:] if error else ""}
        if not result.exists():
            return Ran(seconds, error=error or "no result", **told)
        plain = json.loads(result.read_text())
        loss = _LOSS.search(done.stdout)
        fits = [one for one in plain["phases"] if one["name"] == "fit"]
        return Ran(
            seconds=seconds,
            fit_s=sum(one["end_s"] - one["begin_s"] for one in fits),
            peak_bytes=plain["peak_bytes"],
            growth=show_growth(plain),
            verdict=plain["verdict"],
            findings=", ".join(show_finding(one) for one in plain["findings"]),
            loss=None if loss is None else float(loss[1]),
            error=error,
            levels=find_levels(out),
            **told,
        )


def show_growth(plain: dict[str, Any]) -> str:
    """Writes growth as the table does."""
    growth = plain["growth"]
    if growth is None:
        return "?" if plain["why_unknown"] else "0"
    if growth["bytes_per_epoch"] is None:
        return f"{growth['bytes_per_s'] / 1e6:.2f} a second"
    return f"{growth['bytes_per_epoch'] / 1e6:.2f}"


def show_finding(finding: dict[str, Any]) -> str:
    """Writes a finding in short, a note in brackets."""
    code: str = finding["code"]
    return code if finding["is_problem"] else f"({code})"


def find_levels(folder: Path) -> tuple[int, ...]:
    """Returns the least memory held in each `fit` of a recording."""
    recording = read_run(folder)
    points = total_series(recording)
    fits = [
        one for one in find_phases(recording.marks, points, recording.end_t_s) if one.name == "fit"
    ]
    held = [
        [one.held_bytes for one in points if fit.begin_t_s <= one.t_s <= fit.end_t_s]
        for fit in fits
    ]
    return tuple(min(values) for values in held if values)
