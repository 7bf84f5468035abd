"""A child process takes signals until it has ended, and then its end is known."""

import os
import signal
import subprocess
import sys
import time

from memfit.supervise.child_process import Child


def test_signals_after_the_end_do_not_take_the_end_away():
    child = Child([sys.executable, "-c", "raise SystemExit(5)"], dict(os.environ))
    time.sleep(0.5)  # it has ended, and nobody has waited for it

    for _ in range(3):
        child.send(signal.SIGTERM)
    ended = child.wait(10)
    child.send(signal.SIGTERM)

    assert ended.code == 5


def test_a_child_ends_with_its_supervisor():
    code = (
        "import os, sys, time; from memfit.supervise.child_process import Child; "
        "child = Child([sys.executable, '-c', 'import time; time.sleep(60)'], dict(os.environ)); "
        "print(child.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as supervisor:
        pid = int(supervisor.stdout.readline())

        supervisor.kill()
        supervisor.wait()

    assert is_gone(pid)


def is_gone(pid):
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False
