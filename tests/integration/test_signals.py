"""Every signal reaches the script exactly once, however it was sent."""

import contextlib
import os
import pty
import random
import select
import signal
import subprocess
import time

import pytest

from memfit.record.read_run import read_run

COUNTING = """
import signal, sys, time
count = 0
def handle(number, frame):
    global count
    count += 1
    print("got", signal.Signals(number).name, flush=True)
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"):
    signal.signal(getattr(signal, name), handle)
print("ready", flush=True)
until = time.monotonic() + 30
while not count and time.monotonic() < until:
    time.sleep(0.01)
time.sleep(0.5)  # a second one would come now
print("count", count, flush=True)
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"])
@pytest.mark.parametrize("send", [os.kill, os.killpg])
def test_a_signal_to_memfit_or_to_its_group_reaches_the_script_once(memfit, name, send):
    memfit.script(COUNTING)
    with start(memfit, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout.readline() == "ready\n"

        send(process.pid, getattr(signal, name))

        assert process.stdout.read() == f"got {name}\ncount 1\n"
    assert process.returncode == 0


def test_ctrl_c_in_a_terminal_reaches_the_script_once(memfit):
    memfit.script(COUNTING)
    ours, theirs = pty.openpty()
    process = start(memfit, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=take_terminal)
    os.close(theirs)
    text = read_until(ours, "ready")

    os.write(ours, b"\x03")
    text += read_until(ours, "count")

    assert text.count("got SIGINT") == 1
    assert process.wait(30) == 0


def take_terminal():
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def read_until(descriptor, word):
    text = ""
    while word not in text:
        ready, _, _ = select.select([descriptor], [], [], 30)
        assert ready, f"no {word!r} in {text!r}"
        text += os.read(descriptor, 4096).decode()
    return text


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL", "SIGABRT"])
def test_memfit_ends_by_the_signal_that_ended_the_script(memfit, name):
    script = memfit.script(
        f"import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
        f"os.kill(os.getpid(), signal.{name})"
    )

    ran = memfit.run(script)

    assert ran.code == -getattr(signal, name)
    assert ran.result["exit"] == {"code": None, "signal": name}


def test_a_signal_that_memfit_was_told_to_ignore_is_ignored_in_the_script_too(memfit):
    memfit.script("import signal; print(signal.getsignal(signal.SIGHUP) is signal.SIG_IGN)")

    with start(memfit, stdout=subprocess.PIPE, preexec_fn=ignore_hangup) as process:
        assert process.stdout.read() == "True\n"
    assert process.returncode == 0


def ignore_hangup():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def test_no_process_is_left_behind(memfit):
    memfit.script("print('done')")
    process = start(memfit, stdout=subprocess.PIPE, start_new_session=True)
    process.communicate(timeout=30)

    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


WAITING = """
import os, sys, time
print(os.getpid(), flush=True)
time.sleep(60)
"""
FATAL = ("SIGINT", "SIGTERM", "SIGHUP", "SIGKILL")


def check_signals(memfit, seed):
    """Sends some signals in short order, and checks that all ends as it would without memfit."""
    draw = random.Random(seed)
    memfit.script(WAITING)
    with start(memfit, stdout=subprocess.PIPE, start_new_session=True) as process:
        child = int(process.stdout.readline())
        sent = []
        for _ in range(draw.choice([1, 1, 2, 3])):
            number = getattr(signal, draw.choice([*FATAL, "SIGSTOP"]))
            target = draw.choice(["supervisor", "group", "child"])
            send(target, number, process, child)
            if number == signal.SIGSTOP:
                time.sleep(draw.uniform(0, 0.05))
                send(target, signal.SIGCONT, process, child)
            sent.append(number)
            time.sleep(draw.uniform(0.002, 0.05))
        send("group", signal.SIGTERM, process, child)  # if all were stops
        code = process.wait(60)

    assert -code in {*sent, signal.SIGTERM} - {signal.SIGSTOP}, (seed, sent, code)
    assert_nobody_left(process.pid)
    (run,) = (memfit.cwd / "memfit-runs").glob("2*")
    assert read_run(run).header is not None


def send(target, number, process, child):
    with contextlib.suppress(ProcessLookupError):
        if target == "group":
            os.killpg(process.pid, number)
        else:
            os.kill(process.pid if target == "supervisor" else child, number)


def assert_nobody_left(group):
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    raise AssertionError("a process is left behind")


@pytest.mark.parametrize("seed", range(8))
def test_signals_in_short_order_end_the_script_as_they_would_without_memfit(memfit, seed):
    check_signals(memfit, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8, 100))
def test_any_signals_in_short_order_end_the_script_as_they_would_without_memfit(memfit, seed):
    check_signals(memfit, seed)


def start(memfit, preexec_fn=None, **how):
    def prepare():
        # Tests that run in the background have it ignored, and so would memfit.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if preexec_fn is not None:
            preexec_fn()

    return subprocess.Popen(
        [*memfit.command, "run", "--quiet", "script.py"],
        cwd=memfit.cwd,
        text=True,
        preexec_fn=prepare,  # noqa: PLW1509  # no threads here
        **how,
    )
