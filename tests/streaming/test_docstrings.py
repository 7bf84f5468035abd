"""Examples in docstrings are right."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "memfit.plan.order",
        "memfit.plan.shuffling",
        "memfit.act.streaming.chained",
        "memfit.act.streaming.crc32c",
        "memfit.act.streaming.growing_file",
        "memfit.act.streaming.layout",
        "memfit.act.streaming.ragged",
        "memfit.act.streaming.rows",
        "memfit.act.streaming.source",
    ],
)
def test_examples_run(name):
    failed, attempted = doctest.testmod(importlib.import_module(name))

    assert failed == 0
    assert attempted > 0
