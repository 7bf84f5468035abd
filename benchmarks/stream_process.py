"""Runs a measurement of `stream.py` in a process of its own, and watches its memory meanwhile.

The process prints `idle` when all is imported and waits for a line; memory counts from there on.
Its last line are its figures, as JSON.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fit import RunFailedError
from overhead import explain, tell

CHILD = Path(__file__).with_name("stream_child.py")
TIMEOUT_S = 180.0
# Joins a control group, then becomes the process.
_JOIN = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
_EVERY_S = 0.01
# The sums over several processes take the kernel some milliseconds.
_EVERY_OF_MANY_S = 0.1


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of a process and of those below it.

    Attributes:
        anon_bytes: What belongs to them alone.
        file_bytes: Pages of files and of shared memory that they have mapped.
    """

    anon_bytes: int = 0
    file_bytes: int = 0

    def above(self, idle: "Memory") -> "Memory":
        """Returns what is more than in an idle process."""
        return Memory(
            max(0, self.anon_bytes - idle.anon_bytes), max(0, self.file_bytes - idle.file_bytes)
        )


@dataclass(frozen=True, slots=True)
class Ran:
    """A measurement.

    Attributes:
        figures: What the process printed.
        peak: The most above idle; both sizes at their highest, maybe at different times.
    """

    figures: dict[str, Any]
    peak: Memory


def run_child(
    wanted: Mapping[str, Any],
    *,
    backend: str | None = None,
    group: Path | None = None,
    when_idle: Callable[[str, Memory], None] = lambda line, memory: None,
) -> Ran:
    """Runs `stream_child.py`.

    Args:
        wanted: What to measure; see there.
        backend: What Keras runs on.
        group: The control group to run in.
        when_idle: Called with what the process says when it is idle, and its memory.

    Raises:
        RunFailedError: It did not end well.
    """
    began = time.monotonic()
    command = [sys.executable, str(CHILD), json.dumps(wanted)]
    if group is not None:
        command = ["sh", "-c", _JOIN, str(group), *command]
    process = subprocess.Popen(
        command,
        env={
            **os.environ,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "TQDM_DISABLE": "1",
            "RAY_DEDUP_LOGS": "0",
            "XDG_CACHE_HOME": str(Path(wanted["folder"]) / "cache"),
            **({} if backend is None else {"KERAS_BACKEND": backend}),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watch = _Watch(process.pid)
    ending = threading.Timer(TIMEOUT_S, process.kill)
    ending.start()
    messages: list[str] = []
    reader = threading.Thread(target=lambda: messages.append(process.stderr.read()))
    reader.start()
    last = ""
    with watch:
        for line in process.stdout:
            if line.startswith("idle"):
                watch.mark_idle()
                when_idle(line, watch.idle)
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write("go\n")
                    process.stdin.flush()
            last = line if line.startswith("{") else last
        process.wait()
    ending.cancel()
    reader.join()
    if process.returncode or not last:
        reason = explain(process.returncode, "".join(messages))
        took_s = time.monotonic() - began
        tell(f"  {shorten(wanted)}: {reason} after {took_s:.0f} s\n{''.join(messages)[-1500:]}")
        raise RunFailedError(reason)
    tell(f"  {shorten(wanted)}: {last.strip()[:300]} {watch.peak} {time.monotonic() - began:.0f} s")
    return Ran(json.loads(last), watch.peak)


def shorten(wanted: Mapping[str, Any]) -> str:
    """Writes what is measured in a line of progress."""
    return " ".join(str(value) for key, value in wanted.items() if key != "folder")


class _Watch:
    """Reads the memory of a process tree again and again; a `with` block."""

    def __init__(self, pid: int) -> None:
        self.idle = Memory()
        self._pid = pid
        self._most = Memory()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "_Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    @property
    def peak(self) -> Memory:
        """The most above idle."""
        return self._most.above(self.idle)

    def mark_idle(self) -> None:
        """Counts from here on."""
        self.idle = self._most = read_tree(self._pid)

    def _watch(self) -> None:
        every_s = _EVERY_S
        while not self._is_over.wait(every_s):
            now, most = read_tree(self._pid), self._most
            self._most = Memory(
                max(now.anon_bytes, most.anon_bytes), max(now.file_bytes, most.file_bytes)
            )
            every_s = _EVERY_S if len(_find_tree(self._pid)) == 1 else _EVERY_OF_MANY_S


def read_tree(pid: int) -> Memory:
    """Returns the memory of a process and of all below it; pages that several share count once."""
    pids = _find_tree(pid)
    # What one process has is told at once; shares of pages must be summed up by the kernel.
    name, anon, files = (
        ("status", ("RssAnon:",), ("RssFile:", "RssShmem:"))
        if len(pids) == 1
        else ("smaps_rollup", ("Pss_Anon:",), ("Pss_File:", "Pss_Shmem:"))
    )
    sums = [0, 0]
    for one in pids:
        with contextlib.suppress(OSError):  # it has ended
            for line in Path(f"/proc/{one}/{name}").read_text().splitlines():
                for at, keys in enumerate((anon, files)):
                    if line.startswith(keys):
                        sums[at] += int(line.split()[1]) * 1024
    return Memory(*sums)


def _find_tree(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += map(int, task.read_text().split())
    return found
