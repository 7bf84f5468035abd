"""Signals between a user and the script: each one reaches the script exactly once.

The supervisor and the script share a process group, as a script and its shell pipeline do,
so that Ctrl-C, Ctrl-Z and the terminal work as ever. A signal to the group (Ctrl-C, `timeout`)
reaches the script by itself; a signal to the supervisor alone must be passed on. A signal
does not say which of the two it was, so a third process waits in the group as a witness.
"""

import contextlib
import os
import signal
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

# All that would end this process, but for faults of its own: the script may handle any of them.
_PASSED_ON = (
    *("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM"),
    *("SIGPROF", "SIGXCPU", "SIGXFSZ", "SIGIO", "SIGPWR", "SIGSTKFLT", "SIGRTMIN", "SIGRTMAX"),
)
# The kernel signals the members of a group one after another; this lets it finish.
_DELIVERY_S = 0.02


class SignalRelay:
    """While it is open, signals to this process go on to the script unless it has them already."""

    def __init__(self) -> None:
        self._send: Callable[[int], None] | None = None
        self._early: list[int] = []
        # Signals that came, with who saw which of them, in the order in which they are passed on.
        self._arrived: deque[tuple[int, Witness | None]] = deque()
        self._is_passing_on = False
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
        """Takes a signal. One that comes while another is passed on waits for its turn."""
        if self._send is None:
            self._early.append(number)
            return
        self._arrived.append((number, self._witness))
        if self._is_passing_on:
            return
        self._is_passing_on = True
        try:
            while self._arrived:
                self._pass_on(self._send, *self._arrived.popleft())
        finally:
            self._is_passing_on = False

    def _pass_on(self, send: Callable[[int], None], number: int, witness: "Witness | None") -> None:
        if witness is None:  # no way to know: a terminal's Ctrl-C is by far the likeliest
            if number != signal.SIGINT:
                send(number)
            return
        time.sleep(_DELIVERY_S)
        if not witness.has_received(number):
            send(number)
        elif witness is self._witness:  # it holds that signal for good: take a new one
            self._witness = open_witness()
            witness.close()


class Witness:
    """A process that only waits, in our group, with all signals blocked, so that they stay pending.

    Args:
        pid: Its process.
        lifeline: Our end of a pipe; when it closes, even by our death, the witness ends.
    """

    def __init__(self, pid: int, lifeline: int) -> None:
        self._pid = pid
        self._lifeline = lifeline
        self._received_at_end: int | None = None

    def has_received(self, number: int) -> bool:
        """Whether signal `number` was sent to it too, and so to the whole group."""
        received = self._read_pending() if self._received_at_end is None else self._received_at_end
        return bool(received >> (number - 1) & 1)

    def _read_pending(self) -> int:
        try:
            status = Path(f"/proc/{self._pid}/status").read_text()
        except OSError:
            return 0
        pending = next(
            (line.split()[1] for line in status.splitlines() if line.startswith("ShdPnd:")), "0"
        )
        return int(pending, 16)

    def close(self) -> None:
        """Ends the witness, also one that was stopped; what it has received stays known."""
        if self._received_at_end is not None:
            return
        self._received_at_end = self._read_pending()
        os.close(self._lifeline)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
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
