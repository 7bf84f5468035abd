"""Show that each fault of the zoo is real and each twin clean: python tests/zoo/measure.py [names].

Each script runs alone in a plain Python; the memory of its process tree is sampled from outside.
Without names everything runs; "healthy" stands for all healthy trainings.
"""

import os
import subprocess
import sys
import time
import tomllib
from typing import NamedTuple

import psutil
from judge import ZOO, missing

INTERVAL_S = 0.25
MB = 1 << 20


class Run(NamedTuple):
    seconds: float
    growth: float
    peak: float
    exit_code: int


def resident(process, proportional):
    total = 0
    for each in [process, *process.children(recursive=True)]:
        try:
            total += each.memory_full_info().pss if proportional else each.memory_info().rss
        except psutil.Error:
            continue
    return total


def run(script, backend, proportional=False):
    """Run a script; growth is between the medians of the middle and the last tenth of its run."""
    environment = {**os.environ, "KERAS_BACKEND": backend, "PYTHONUNBUFFERED": "1"}
    started = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, script.name],
        cwd=script.parent,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE if "-v" not in sys.argv else None,
    )
    samples = []
    process = psutil.Process(child.pid)
    while child.poll() is None:
        try:
            samples.append(resident(process, proportional) / MB)
        except psutil.Error:
            break
        time.sleep(INTERVAL_S)
    seconds = time.monotonic() - started
    if child.wait() and child.stderr:
        sys.stderr.write(child.stderr.read().decode()[-1500:])
    # The last samples may show a process that is already going.
    samples = samples[:-2] or [0.0]
    tenth = max(1, len(samples) // 10)
    middle = samples[len(samples) // 2 :][:tenth]
    growth = sorted(samples[-tenth:])[tenth // 2] - sorted(middle)[len(middle) // 2]
    return Run(seconds, growth, max(samples), child.returncode)


def row(name, backend, cells):
    print(f"{name:32s} {backend:10s} " + " ".join(f"{cell:>9}" for cell in cells), flush=True)


def measure_script(entry):
    folder = ZOO / entry["name"]
    proportional = entry.get("measure") == "pss"
    leaking = run(folder / "leaking.py", entry["backend"], proportional)
    clean = run(folder / "clean.py", entry["backend"], proportional)
    figures = [leaking.seconds, clean.seconds, leaking.growth, clean.growth]
    figures += [leaking.peak, clean.peak]
    failed = "FAILED" if leaking.exit_code or clean.exit_code else ""
    plateau = "plateau" if entry.get("plateau") else ""
    row(entry["name"], entry["backend"], [*(f"{f:.1f}" for f in figures), failed or plateau])


def measure_healthy(entry):
    result = run(ZOO / "healthy" / entry["file"], entry["backend"])
    cells = [f"{result.seconds:.1f}", "", f"{result.growth:.1f}", "", f"{result.peak:.1f}", ""]
    name = f"healthy/{entry['name']}"
    row(name, entry["backend"], [*cells, "FAILED" if result.exit_code else ""])


def main():
    zoo = tomllib.loads((ZOO / "zoo.toml").read_text())
    wanted = [word for word in sys.argv[1:] if not word.startswith("-")]
    row("name", "backend", ["s", "s clean", "MB", "MB clean", "peak", "pk clean", ""])
    for entry in zoo["script"] + zoo["healthy"]:
        is_healthy = "file" in entry
        if wanted and entry["name"] not in wanted and not (is_healthy and "healthy" in wanted):
            continue
        if missing(entry):
            row(entry["name"], entry["backend"], ["needs " + " ".join(missing(entry))])
        elif is_healthy:
            measure_healthy(entry)
        else:
            measure_script(entry)


if __name__ == "__main__":
    main()
