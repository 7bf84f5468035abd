"""The first line of a recording."""

import os

import memfit
from memfit.measure.limits import Limit
from memfit.record.header import make_header


def test_a_header_names_the_process_its_role_and_the_command():
    header = make_header("agent", ["train.py", "--fast"])

    assert (header.role, header.pid, header.memfit) == ("agent", os.getpid(), memfit.__version__)
    assert header.command == ("train.py", "--fast")
    assert header.limit is not None


def test_a_limit_that_is_given_counts():
    limit = Limit(4_000_000_000, "asked for")

    assert make_header("supervisor", ["train.py"], limit=limit).limit == limit
