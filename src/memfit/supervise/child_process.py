"""A child process: start it, signal it, wait for it and learn its peak."""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_POLL_EVERY_S = 0.05
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended.

    Attributes:
        code: Its exit code; `None` if a signal ended it.
        signal: Name of that signal.
        peak_rss_bytes: The kernel's high-water mark, exact even after a kill.
    """

    code: int | None
    signal: str | None
    peak_rss_bytes: int | None


class Child:
    """A process with our standard streams, working folder and process group.

    Args:
        command: The program and its arguments.
        environment: Its environment.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        # Nobody would pass signals on to a script that outlives its supervisor.
        self._process = subprocess.Popen(command, env=environment, preexec_fn=_end_with_parent())  # noqa: PLW1509  # one C call
        self._has_ended = False
        self._descriptor: int | None = None
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):  # a kernel before 5.3
                self._descriptor = os.pidfd_open(self.pid)

    @property
    def pid(self) -> int:
        """Its process number."""
        return self._process.pid

    def send(self, number: int) -> None:
        """Sends it a signal; nothing happens if it has ended.

        `Popen.send_signal` would ask whether it has ended, and so learn how, in place of `wait`.
        """
        if self._has_ended:
            return
        with contextlib.suppress(OSError):
            if not self._send_by_descriptor(number):
                os.kill(self.pid, number)

    def _send_by_descriptor(self, number: int) -> bool:
        """Sends a signal that can reach no other process; `False` where that is not possible."""
        if self._descriptor is None:
            return False
        try:
            signal.pidfd_send_signal(self._descriptor, number)
        except ProcessLookupError:
            return True
        except OSError:  # forbidden in this container
            return False
        return True

    def wait(self, timeout_s: float) -> Ended | None:
        """Returns how it ended, as soon as it does; `None` after `timeout_s`."""
        if not hasattr(os, "wait4"):
            return self._wait_on_windows(timeout_s)
        if self._descriptor is not None:
            poll = select.poll()
            poll.register(self._descriptor, select.POLLIN)
            return self._reap() if poll.poll(timeout_s * 1000) else None
        until_s = time.monotonic() + timeout_s
        ended = self._reap()
        while ended is None and time.monotonic() < until_s:
            time.sleep(_POLL_EVERY_S)
            ended = self._reap()
        return ended

    def _reap(self) -> Ended | None:
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        if pid == 0:
            return None
        self._has_ended = True
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        unit_bytes = 1 if os.uname().sysname == "Darwin" else 1024
        return _ended(code, usage.ru_maxrss * unit_bytes)

    def _wait_on_windows(self, timeout_s: float) -> Ended | None:
        try:
            return _ended(self._process.wait(timeout_s), None)
        except subprocess.TimeoutExpired:
            return None


def _end_with_parent() -> Callable[[], None] | None:
    """Returns what has the kernel kill a child whose parent is killed; `None` off Linux."""
    if sys.platform != "linux":
        return None
    set_option = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def end_with_parent() -> None:
        set_option(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was killed just now
            os._exit(1)

    return end_with_parent


def _ended(code: int, peak_rss_bytes: int | None) -> Ended:
    if code >= 0:
        return Ended(code, None, peak_rss_bytes)
    try:
        name = signal.Signals(-code).name
    except ValueError:  # most real-time signals have no name
        return Ended(128 - code, None, peak_rss_bytes)
    return Ended(None, name, peak_rss_bytes)
