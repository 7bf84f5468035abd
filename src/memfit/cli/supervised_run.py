"""A supervised run from the terminal: start it, show it live, show the result."""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from memfit.budget import Budget
from memfit.cli.status_line import StatusLine
from memfit.diagnose.diagnosis import Diagnosis, Run
from memfit.errors import RunExistsError
from memfit.messages import say
from memfit.record.read_run import read_run
from memfit.record.run_folder import create_run
from memfit.record.samples import Exit
from memfit.supervise.supervisor import Supervisor, Watched


def open_run(target: str, out: Path | None) -> Path | None:
    """Returns the folder of a new run, a temporary one if need be; `None` if none is writable."""
    try:
        return _try_writing(create_run(target, out))
    except RunExistsError:
        raise
    except OSError as error:
        reason = error.strerror
    said = f"cannot write to {out or 'memfit-runs/'} ({reason}). The script still runs"
    try:
        run = _try_writing(Path(tempfile.mkdtemp(prefix="memfit-")))
    except OSError:
        say(f"{said}, and nothing is recorded. Name a folder that can be written to with --out.")
        return None
    say(f"{said}; this run is recorded in {run}. Name another folder with --out.")
    return run


def _try_writing(run: Path) -> Path:
    probe = run / ".memfit"
    probe.touch()
    probe.unlink()
    return run


def supervise(
    command: Sequence[str],
    run: Path,
    limit_bytes: int | None,
    budget: Budget | None,
    args: argparse.Namespace,
) -> Exit:
    """Runs the command to its end, with the live line if there is a terminal for it."""
    supervisor = Supervisor(
        command,
        run,
        adds_logs=args.logs,
        budget=budget,
        limit_bytes=limit_bytes,
        reads_proportional=args.pss,
    )
    with StatusLine(run, is_shown=not args.quiet) as status_line:
        has_notified = False

        def on_sample(watched: Watched) -> None:
            nonlocal has_notified
            if watched.error is not None and not has_notified:
                has_notified = True
                say(
                    f"cannot write the recording ({watched.error.strerror}). The script continues; "
                    "the recording has a gap until the disk has room again."
                )
            status_line.update(watched.sample)

        return supervisor.run(on_sample)


def read_budget(args: argparse.Namespace) -> Budget | None:
    """Returns what every `fit` may take; `None` if the user gave no budget."""
    if args.budget is None and args.device_budget is None:
        return None
    return Budget.parse(args.budget, args.device_budget)


def show_result(run: Path, ended: Exit, args: argparse.Namespace) -> Diagnosis:
    """Writes the JSON file and the summary, and returns the diagnosis."""
    recording = read_run(run)
    if recording.exit is None:  # the disk was full: say what is known all the same
        recording = replace(recording, exit=ended)
    shown = Run.of(recording)
    if args.json is not None:
        from memfit.report.run.json import render_json

        try:
            args.json.write_text(render_json(shown))
        except OSError as error:
            say(f"cannot write {args.json} ({error.strerror}); see it with: memfit diagnose --json")
    if not args.quiet:
        from rich.console import Console

        from memfit.report.run.text import render_place, render_text

        console = Console(stderr=True, highlight=False)
        console.rule(style="dim")
        render_text(shown, console)
        render_place(run, console)
    return shown.diagnosis


def exit_like(ended: Exit) -> int:
    """Returns the script's exit code; ends this process by the same signal if one ended it.

    A shell then does what it would without memfit: it stops a loop at Ctrl-C, for one.
    """
    if ended.signal is None:
        return ended.code or 0
    number = signal.Signals[ended.signal]
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name == "posix":
        _leave_no_core_file()
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return 128 + number  # still here: the first process of a container cannot end itself


def _leave_no_core_file() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
