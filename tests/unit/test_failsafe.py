import functools
import signal

import pytest

from memfit import failsafe
from memfit.failsafe import harmless


@pytest.fixture
def told(monkeypatch):
    """What the recorder of this process is told."""
    heard = []
    monkeypatch.setattr(failsafe, "on_trouble", lambda where, error: heard.append((where, error)))
    return heard


def test_what_works_returns_its_result(told):
    assert harmless(divmod)(7, 2) == (3, 1)
    assert told == []


def test_an_error_is_reported_and_nothing_returned_in_its_place(told):
    error = RuntimeError("no such device")

    def read_devices():
        raise error

    assert harmless(read_devices)() is None
    assert [one for _, one in told] == [error]


def test_an_error_is_reported_with_where_it_happened(told):
    def read_devices():
        raise RuntimeError

    harmless(read_devices)()

    assert told[0][0].endswith("read_devices")


@pytest.mark.parametrize("wish", [KeyboardInterrupt, SystemExit])
def test_a_wish_to_end_the_training_is_not_held_back(told, wish):
    def stop():
        raise wish

    with pytest.raises(wish):
        harmless(stop)()


def test_a_recorder_that_fails_itself_does_no_harm(monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(failsafe, "on_trouble", fail)

    assert harmless(lambda: 1 / 0)() is None


def test_without_a_recorder_an_error_does_no_harm(monkeypatch):
    monkeypatch.setattr(failsafe, "on_trouble", None)

    assert harmless(lambda: 1 / 0)() is None


class OutOfTimeError(Exception):
    """What a script's own signal handlers raise."""


def raise_out_of_time(_number, _frame):
    raise OutOfTimeError


class Handler:
    def __getattr__(self, name):
        raise RuntimeError(name)

    def handle(self, number, frame):
        raise_out_of_time(number, frame)

    __call__ = handle


@pytest.mark.parametrize(
    "handler",
    [
        raise_out_of_time,
        Handler().handle,
        Handler(),
        functools.partial(raise_out_of_time),
    ],
    ids=["function", "method", "object", "partial"],
)
def test_what_a_signal_handler_raises_inside_memfit_reaches_the_script(told, handler):
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(OutOfTimeError):
            harmless(signal.raise_signal)(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert told == []
