"""Signals between a user and the script: each one reaches the script exactly once.

The supervisor and the script share a process group, as a script and its shell pipeline do,
so that Ctrl-C, Ctrl-Z and the terminal work as ever. A signal to the group (Ctrl-C, `timeout`)
reaches the script by itself; a signal to the supervisor alone must be passed on. A signal
does not say which of the two it was, so a third process waits in the group as a witness.
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

_PASSED_ON = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2")
# The kernel signals the members of a group one after another; this lets it finish.
_DELIVERY_S = 0.02


class SignalRelay:
    """While it is open, signals to this process go on to the script unless it has them already."""

    def __init__(self) -> None:
        self._send: Callable[[int], None] | None = None
        self._early: list[int] = []
        self._witness: Witness | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> Self:
        self._witness = open_witness()
        for name in _PASSED_ON:
            number = getattr(signal, name, None)
            # What is ignored here (nohup, a background job) is ignored in the script too.
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._relay)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # as `signal` returned it
        if self._witness is not None:
            self._witness.close()

    def connect(self, send: Callable[[int], None]) -> None:
        """Names who takes the signals; those that came before are sent now."""
        self._send = send
        for number in self._early:
            send(number)

    def _relay(self, number: int, _frame: FrameType | None) -> None:
        if self._send is None:
            self._early.append(number)
        elif not self._reached_the_group(number):
            self._send(number)

    def _reached_the_group(self, number: int) -> bool:
        if self._witness is None:  # no way to know: a terminal's Ctrl-C is by far the likeliest
            return number == signal.SIGINT
        time.sleep(_DELIVERY_S)
        if not self._witness.has_received(number):
            return False
        self._witness.close()  # it holds that signal for good: take a new one
        self._witness = open_witness()
        return True


class Witness:
    """A process that only waits, in our group, with all signals blocked, so that they stay pending.

    Args:
        pid: Its process.
        lifeline: Our end of a pipe; when it closes, even by our death, the witness ends.
    """

    def __init__(self, pid: int, lifeline: int) -> None:
        self._pid = pid
        self._lifeline = lifeline

    def has_received(self, number: int) -> bool:
        """Whether signal `number` was sent to it too, and so to the whole group."""
        try:
            status = Path(f"/proc/{self._pid}/status").read_text()
        except OSError:
            return False
        pending = next(
            (line.split()[1] for line in status.splitlines() if line.startswith("ShdPnd:")), "0"
        )
        return bool(int(pending, 16) >> (number - 1) & 1)

    def close(self) -> None:
        """Ends the witness."""
        os.close(self._lifeline)
        os.waitpid(self._pid, 0)


def open_witness() -> Witness | None:
    """Starts a witness; `None` where there is no `/proc` to read it by."""
    if not Path("/proc/self/status").exists():
        return None
    waiting, lifeline = os.pipe()
    blocked = set(signal.valid_signals()) - {signal.SIGTSTP, signal.SIGCONT, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    pid = os.fork()
    if pid == 0:
        os.close(lifeline)
        os.read(waiting, 1)
        os._exit(0)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(waiting)
    return Witness(pid, lifeline)
