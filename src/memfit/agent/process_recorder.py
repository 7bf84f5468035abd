"""The one recorder of this process under `memfit run`, begun when it is first needed."""

import os
import threading
import time

from memfit.agent import gc_pause
from memfit.agent.observations import Observations
from memfit.agent.recorder import Recorder
from memfit.agent.sampler import Counters
from memfit.backends import load, loaded_backend_names
from memfit.budget import Budget
from memfit.failsafe import harmless
from memfit.record.evidence import Uncontrolled
from memfit.record.handover import Handover

counters = Counters()
observed = Observations()
_recorder: Recorder | None = None
_is_tried = False


def get_recorder() -> Recorder | None:
    """Returns this process's recorder; `None` without `memfit run` or where it cannot write."""
    global _recorder, _is_tried
    if not _is_tried:
        _is_tried = True
        handover = Handover.from_environment()
        if handover is not None:
            _recorder = Recorder(handover.run, counters, observed, is_alone=False)
            if hasattr(os, "register_at_fork"):  # there is no fork on Windows
                os.register_at_fork(after_in_child=_forget)
    return _recorder


def is_script() -> bool:
    """Whether this is the process of the script itself, not one that it started."""
    handover = Handover.from_environment()
    return handover is not None and handover.supervisor_pid == os.getppid()


def adds_logs() -> bool:
    """Whether memory figures go into Keras's logs (`memfit run --logs`)."""
    handover = Handover.from_environment()
    return handover is not None and handover.adds_logs


def get_budget() -> Budget | None:
    """Returns what every `fit` may take (`memfit run --budget`); `None` without one."""
    handover = Handover.from_environment()
    return None if handover is None else handover.budget


def count_call() -> None:
    """Counts a call of a compiled function."""
    counters.calls += 1
    if not _is_tried:
        _begin()
    elif _recorder is not None and _recorder.wants_collection and is_between_steps():
        _recorder.collect()


def count_update() -> None:
    """Counts an optimizer update."""
    counters.updates += 1
    if not _is_tried:
        _begin()


@harmless
def note_uncontrolled(why: str) -> None:
    """Writes that a `fit` is not held to its budget."""
    recorder = get_recorder()
    if recorder is not None:
        recorder.write(Uncontrolled(time.monotonic(), why))


def is_between_steps() -> bool:
    """Whether this is the script's own thread, and no function is being traced in it."""
    if threading.current_thread() is not threading.main_thread():
        return False
    return not any(load("events", name).is_tracing() for name in loaded_backend_names())


_begin = harmless(get_recorder)


class FrameworkEvents:
    """What the frameworks report: steps go to the counters, the rest is kept by line."""

    stepped = staticmethod(count_call)
    made = staticmethod(observed.made)
    compiled = staticmethod(observed.compiled)
    loaded = staticmethod(observed.loaded)


observer = FrameworkEvents()


def _forget() -> None:
    """After a fork: the child has its own recording, if it ever trains."""
    global _recorder, _is_tried
    gc_pause.after_fork_in_child()
    if _recorder is not None:
        _recorder.forget()
    _recorder, _is_tried = None, False
