"""Examples in docstrings are right."""

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "memfit.streaming.order.epoch",
        "memfit.streaming.order.shuffle_plan",
        "memfit.streaming.data.reading",
        "memfit.streaming.views.concatenate",
        "memfit.streaming.sources.formats",
        "memfit.streaming.store.npy_files",
        "memfit.streaming.data.layout",
        "memfit.streaming.data.ragged",
        "memfit.streaming.data.rows",
        "memfit.streaming.data.source",
    ],
)
def test_examples_run(name):
    failed, attempted = doctest.testmod(importlib.import_module(name))

    assert failed == 0
    assert attempted > 0
