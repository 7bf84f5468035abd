"""What `configure` accepts, and what it refuses with which words."""

import pytest

from memfit.backends.accelerators import AcceleratorSettings
from memfit.errors import InvalidSizeError, UsageError
from memfit.fitting.levers.accelerators import configure, read_settings

NOTHING = {"on_demand": None, "limit": None, "preallocate": None}


@pytest.mark.parametrize(
    ("asked", "settings"),
    [
        ({"on_demand": True}, AcceleratorSettings(on_demand=True)),
        ({"on_demand": False}, AcceleratorSettings(on_demand=False)),
        ({"limit": "6GB"}, AcceleratorSettings(limit_bytes=6 * 10**9)),
        (
            {"limit": "6GB", "on_demand": True},
            AcceleratorSettings(on_demand=True, limit_bytes=6 * 10**9),
        ),
        ({"preallocate": 0.75}, AcceleratorSettings(on_demand=False, fraction=0.75)),
        (
            {"preallocate": 1, "on_demand": False},
            AcceleratorSettings(on_demand=False, fraction=1.0),
        ),
        ({"preallocate": False}, AcceleratorSettings(on_demand=True)),
        ({"preallocate": False, "on_demand": True}, AcceleratorSettings(on_demand=True)),
    ],
)
def test_what_is_asked_becomes_settings(asked, settings):
    assert read_settings(**{**NOTHING, **asked}) == settings


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "Received no argument"),
        ({"on_demand": "yes"}, "on_demand must be True or False. Received: on_demand='yes'"),
        ({"on_demand": 1}, "on_demand must be True or False. Received: on_demand=1"),
        ({"limit": 0}, "`limit` must be text.*Received: limit=0"),
        ({"limit": -6e9}, "`limit` must be text.*Received: limit=-6000000000.0"),
        ({"preallocate": True}, "preallocate must be a fraction.*Received: preallocate=True"),
        ({"preallocate": 0}, "preallocate must be a fraction.*Received: preallocate=0"),
        ({"preallocate": 1.5}, "above 0 and up to 1"),
        ({"preallocate": float("nan")}, "above 0 and up to 1"),
        ({"preallocate": "75%"}, "Received: preallocate='75%'"),
        ({"on_demand": True, "preallocate": 0.5}, "on_demand and preallocate contradict"),
        ({"on_demand": False, "preallocate": False}, "on_demand and preallocate contradict"),
        ({"limit": "6GB", "preallocate": 0.5}, "limit and preallocate both say how much"),
    ],
)
def test_what_cannot_work_is_refused_before_a_framework_is_loaded(asked, words):
    with pytest.raises(UsageError, match=words):
        configure(**asked)


@pytest.mark.parametrize("limit", ["6", "0GB", "-6GB", "six GB", ""])
def test_a_limit_is_read_like_every_size(limit):
    with pytest.raises(InvalidSizeError, match="Cannot read a memory size"):
        configure(limit=limit)
