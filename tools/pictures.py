"""Draws the pictures of README and docs from real runs of `memfit run`.

    python tools/pictures.py [NAME ...]

Each is an SVG in docs/pictures/. Some three minutes for all of them.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from line_chart import Line, Panel, draw_panels
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from memfit.diagnose.diagnosis import Run
from memfit.record.read_run import read_run
from memfit.report.run.chart_curves import find_curves
from memfit.report.run.text import summarise
from memfit.units import format_size

ROOT = Path(__file__).parents[1]
PICTURED = ROOT / "tools" / "pictured"
BACKENDS = {"tensorflow": "TensorFlow", "jax": "JAX", "torch": "torch"}
WIDTH = 80
# Rich names fonts on another server; a picture shall not fetch anything.
_SVG = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def main() -> None:
    """Draws the pictures that are named, or all."""
    for name in sys.argv[1:] or PICTURES:
        sys.stderr.write(f"{name}\n")
        (ROOT / "docs" / "pictures" / f"{name}.svg").write_text(PICTURES[name]())


def draw_diagnosis() -> str:
    """The terminal after `memfit run examples/leaking.py`."""
    run = record("examples/leaking.py")
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        console.print(summarise(run, WIDTH))
    return console.export_svg(title="memfit run examples/leaking.py", code_format=_SVG)


def draw_large_step() -> str:
    """What is given back after a large step, on each backend."""
    panels = []
    for backend, title in BACKENDS.items():
        run = record(PICTURED / "large_step.py", backend=backend)
        bands = [(one.begin_t_s, one.end_t_s) for one in run.diagnosis.phases if one.name == "fit"]
        panels.append(Panel(with_peak(title, run), pick(run, "rss", "malloc"), bands))
    return draw_panels(panels, "Memory around one large step on TensorFlow, JAX and torch")


def draw_many_models() -> str:
    """Models in a loop on TensorFlow."""
    ways = {"plain": "nothing", "clear": "clear_session", "session": "memfit.session"}
    panels = []
    for way, title in ways.items():
        run = record(PICTURED / "many_models.py", way)
        panels.append(Panel(with_peak(title, run), pick(run, "rss")))
    return draw_panels(panels, "20 models in a loop on TensorFlow")


def draw_summed_loss() -> str:
    """Losses summed with and without the record of how they were computed."""
    ways = {"tensor": "total += loss", "number": "total += loss.item()"}
    panels = []
    for way, title in ways.items():
        run = record(PICTURED / "summed_loss.py", way, backend="torch")
        panels.append(Panel(with_peak(title, run), pick(run, "rss", "malloc")))
    return draw_panels(panels, "A loop of torch that sums its losses")


def draw_compile_peak() -> str:
    """The first step of a deep model."""
    panels = []
    for backend, title in BACKENDS.items():
        run = record(PICTURED / "deep_model.py", backend=backend)
        epochs = [one for one in run.diagnosis.phases if one.name == "epoch"]
        bands = [(epochs[0].begin_t_s, epochs[0].end_t_s)]
        panels.append(Panel(with_peak(title, run), pick(run, "rss", "malloc"), bands))
    return draw_panels(panels, "The first epoch of a deep model on TensorFlow, JAX and torch")


def record(script: str | Path, *arguments: str, backend: str = "tensorflow") -> Run:
    """Runs a script under memfit, and returns what it recorded and found."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1", "KERAS_BACKEND": backend}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        options = ("run", "--quiet", f"--out={folder}")
        subprocess.run(
            [sys.executable, "-m", "memfit", *options, str(script), *arguments],
            cwd=ROOT,
            env={**os.environ, **quiet},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return Run.of(read_run(folder))


def with_peak(title: str, run: Run) -> str:
    """Returns what is written above a panel."""
    return f"{title}: peak {format_size(max(one.rss_bytes for one in run.diagnosis.points))}"


def pick(run: Run, *roles: str) -> Sequence[Line]:
    """Returns the curves of these roles, as the page of a report draws them."""
    curves = find_curves(run)
    return [Line(one.name, one.t_s, one.size_bytes) for one in curves if one.role in roles]


PICTURES: dict[str, Callable[[], str]] = {
    "diagnosis": draw_diagnosis,
    "large-step": draw_large_step,
    "many-models": draw_many_models,
    "summed-loss": draw_summed_loss,
    "compile-peak": draw_compile_peak,
}


if __name__ == "__main__":
    main()
