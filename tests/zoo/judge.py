"""Run the zoo under memfit and print what it says of each script: python tests/zoo/judge.py.

Names choose scripts; "healthy" stands for all healthy trainings, "--few" for those that `make test`
runs, shortened as it runs them, "--quick" for a third of all, "--kinds=leaking" leaves the twins out, "--fix" applies each
fixed statement and runs it once more, "--keep=FOLDER" keeps the recordings, "--from=FOLDER" judges
kept ones again without running anything. "probe" is the share of the time that memfit spent inside the script.

Each leaking script is right if the finding that is expected comes first, its line if the
finding's line lies in one of the statements that zoo.toml names. Twins and healthy trainings
are right if nothing is found but notes.
"""

import ast
import contextlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from memfit.diagnose.diagnosis import Run
from memfit.record.read_run import read_run
from memfit.report.run.json import to_plain

ZOO = Path(__file__).parent
NOT_CAUSES = ("killed", "near-limit")
MEMFIT = (sys.executable, "-m", "memfit")
KINDS = ("leaking", "clean", "healthy")
# Scripts that run side by side; they mostly use one core each.
AT_A_TIME = 2


@dataclass
class Verdict:
    """What memfit said of one script."""

    name: str
    kind: str
    seconds: float
    verdict: str
    findings: list = field(default_factory=list)
    probe_s: float = 0.0
    failed: bool = False
    is_right: bool = False
    has_line: bool = False
    found_all: bool = True
    helps: bool | None = None

    @property
    def told(self):
        """The findings in short."""
        return ", ".join(
            f"{one['code']}@{one['file'] or '?'}:{one['line']}"
            f"{'' if one['is_problem'] else ' (note)'}"
            for one in self.findings
        )


def run(folder, script, backend, keep=None):
    """Runs one script under memfit and returns its JSON, or `None` if it failed."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(keep or scratch)
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        result = out / "result.json"
        environment = {
            **os.environ,
            "KERAS_BACKEND": backend,
            "OMP_NUM_THREADS": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "MPLBACKEND": "Agg",
        }
        subprocess.run(
            [*MEMFIT, "run", "--quiet", "--out", str(out / "run"), "--json", str(result), script],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
        return json.loads(result.read_text()) if result.exists() else None


def again(kept):
    """Judges a kept recording once more."""
    if not (kept / "run").exists():
        return None
    return to_plain(Run.of(read_run(kept / "run")))


def covers(folder, place, finding):
    """Whether the finding's line lies in the statement of `place`."""
    if Path(finding["file"] or "").name != place["file"]:
        return False
    tree = ast.parse((folder / place["file"]).read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            last = node.body[0].lineno - 1 if hasattr(node, "body") else node.end_lineno
            if first <= place["line"] <= max(first, last):
                if first <= (finding["line"] or 0) <= max(first, last):
                    return True
    return finding["line"] == place["line"]


@contextlib.contextmanager
def shortened(folder, script, numbers):
    """A copy of a script's folder with other numbers in it; without any, the folder itself."""
    with tempfile.TemporaryDirectory() as scratch:
        if numbers:
            folder = Path(shutil.copytree(folder, scratch, dirs_exist_ok=True))
            text = (folder / script).read_text()
            for old, new in numbers.items():
                assert old in text, f"{script} has no {old}"
                text = text.replace(old, new)
            (folder / script).write_text(text)
        yield folder


def judge(entry, kind, *, fixes=False, is_short=False):
    """Runs one script and judges what was said; with `fixes` also what its fixed form does."""
    is_healthy = kind == "healthy"
    folder = ZOO / ("healthy" if is_healthy else entry["name"])
    script = entry["file"] if is_healthy else f"{kind}.py"
    begun_s = time.monotonic()
    if old := option("--from"):
        result = again(Path(old) / f"{entry['name']}-{kind}")
        seconds = result["overhead"]["wall_s"] if result else 1.0
    else:
        keep = option("--keep")
        kept = keep and Path(keep) / f"{entry['name']}-{kind}"
        with shortened(folder, script, is_short and entry["few"]) as place:
            result = run(place, script, entry["backend"], kept)
        seconds = time.monotonic() - begun_s
    if result is None or result["exit"]["code"]:
        return Verdict(entry["name"], kind, seconds, "failed", failed=True)
    causes = [one for one in result["findings"] if one["code"] not in NOT_CAUSES]
    told = Verdict(entry["name"], kind, seconds, result["verdict"], causes)
    told.probe_s = (result["overhead"]["probe_s"] or 0) / seconds
    if kind == "leaking":
        _judge_leaking(told, entry, folder)
        told.helps = helps(entry, told) if fixes else None
    else:
        told.is_right = not any(one["is_problem"] for one in causes)
        told.is_right &= result["verdict"] not in ("growing", "killed")
    return told


def fix(folder, finding, into):
    """Copies a script into `into` with the statement of a finding as memfit fixes it."""
    shutil.copytree(folder, into, dirs_exist_ok=True)
    path = into / finding["file"]
    lines = path.read_text().splitlines()
    statement = next(
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.stmt) and node.lineno == finding["line"]
    )
    indent = lines[finding["line"] - 1][: statement.col_offset]
    last = statement.body[0].lineno - 1 if hasattr(statement, "body") else statement.end_lineno
    fixed = [indent + line for line in finding["after"].splitlines()] or [indent + "pass"]
    lines[finding["line"] - 1 : last] = fixed
    path.write_text("\n".join(lines) + "\n")


def helps(entry, told, *, is_short=False):
    """Whether the growth is gone once the first finding is fixed; `None` if it cannot be."""
    first = told.findings[0] if told.findings else None
    if first is None or first["after"] is None:
        return None
    short = shortened(ZOO / entry["name"], "leaking.py", is_short and entry["few"])
    with short as folder, tempfile.TemporaryDirectory() as scratch:
        fix(folder, first, Path(scratch))
        result = run(Path(scratch), "leaking.py", entry["backend"])
    if result is None or result["exit"]["code"]:
        return False
    again_told = [one["code"] for one in result["findings"] if one["is_problem"]]
    return first["code"] not in again_told


def _judge_leaking(told, entry, folder):
    expected = entry["cause"]
    codes = [{one["code"], *one.get("accept", [])} for one in expected]
    if told.findings:
        first = told.findings[0]
        told.is_right = any(first["code"] in one for one in codes)
        told.has_line = told.is_right and any(
            first["code"] in one and any(covers(folder, place, first) for place in cause["at"])
            for one, cause in zip(codes, expected, strict=True)
        )
    said = {one["code"] for one in told.findings}
    told.found_all = all(said & one for one in codes)


def option(name):
    """The value of `name=value` on the command line."""
    found = [word.partition("=")[2] for word in sys.argv if word.startswith(f"{name}=")]
    return found[0] if found else None


def missing(entry):
    """Packages that a script needs and that are not there."""
    return [name for name in entry.get("needs", []) if not importlib.util.find_spec(name)]


def jobs(wanted=(), *, mark=None, kinds=("leaking", "clean", "healthy")):
    """The scripts to run, each with its kind; those with a mark, such as "quick", if it is given."""
    zoo = tomllib.loads((ZOO / "zoo.toml").read_text())
    for entry in chosen(zoo["script"], mark):
        if not wanted or entry["name"] in wanted:
            yield from ((entry, kind) for kind in kinds if kind != "healthy")
    for entry in chosen(zoo["healthy"], mark):
        is_wanted = not wanted or "healthy" in wanted or entry["name"] in wanted
        if "healthy" in kinds and is_wanted:
            yield entry, "healthy"


def chosen(entries, mark):
    """Those that can run here and have the mark."""
    return [one for one in entries if not missing(one) and (mark is None or one.get(mark))]


def summarise(done):
    """The totals, a line each."""
    kinds = {kind: [one for one in done if one.kind == kind] for kind in KINDS}
    rows = [
        ("right code first", kinds["leaking"], "is_right"),
        ("right line", kinds["leaking"], "has_line"),
        ("all causes found", kinds["leaking"], "found_all"),
        ("silent on twins", kinds["clean"], "is_right"),
        ("silent on healthy", kinds["healthy"], "is_right"),
    ]
    for name, group, attribute in rows:
        if group:
            right = sum(getattr(one, attribute) for one in group)
            yield f"{name:<19}{right} of {len(group)} ({right / len(group):.1%})"
    fixed = [one for one in done if one.helps is not None]
    if fixed:
        right = sum(one.helps for one in fixed)
        yield f"{'fixed lines help':<19}{right} of {len(fixed)} ({right / len(fixed):.1%})"


def row(told):
    """One script, a line."""
    mark = "FAILED" if told.failed else "ok" if told.is_right else "WRONG"
    if told.kind == "leaking" and told.is_right and not told.has_line:
        mark = "line?"
    if told.kind == "leaking" and told.is_right and not told.found_all:
        mark = "missed"
    fixed = {True: " fixed", False: " MENDING DOES NOT HELP", None: ""}[told.helps]
    return (
        f"{told.name:<28}{told.kind:<9}{told.seconds:4.0f} {told.probe_s:6.1%} {told.verdict:<8} "
        f"{mark:<7}{told.told}{fixed}"
    )


def main():
    """Prints a row per script, then the totals."""
    wanted = [word for word in sys.argv[1:] if not word.startswith("-")]
    kinds = tuple((option("--kinds") or ",".join(KINDS)).split(","))
    mark = next((one for one in ("few", "quick") if f"--{one}" in sys.argv), None)
    how = {"fixes": "--fix" in sys.argv, "is_short": mark == "few"}
    todo = jobs(wanted, mark=mark, kinds=kinds)
    done = []
    print(f"{'script':<28}{'kind':<9}{'s':>4} {'probe':>6} {'verdict':<8} {'':<7}found")
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        for told in pool.map(lambda job: judge(*job, **how), todo):
            done.append(told)
            print(row(told), flush=True)
    print("", *summarise(done), sep="\n")
    return 0 if all(one.is_right for one in done) else 1


if __name__ == "__main__":
    sys.exit(main())
