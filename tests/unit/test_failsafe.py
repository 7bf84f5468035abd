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
