"""Real processes to measure, and a real control group to put them in."""

import os
import subprocess
import sys

import pytest

from memfit.measure.control_group import find_control_group


@pytest.fixture
def start():
    """Returns a function that starts a Python child and returns it once it has printed a line.

    A child should read its standard input to the end, which comes when the test is over.
    """
    children = []

    def start_child(code, *arguments):
        child = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        children.append(child)
        child.stdout.readline()
        return child

    yield start_child
    for child in children:
        child.communicate()


@pytest.fixture
def group_folder():
    """A real control group of version 1, below that of the tests; removed afterwards."""
    own = find_control_group(os.getpid())
    if own is None or own.version != 1 or not os.access(own.path, os.W_OK):
        pytest.skip("needs root and a memory control group of version 1 that can be written")
    folder = own.path / f"memfit-test-{os.getpid()}"
    folder.mkdir()
    yield folder
    folder.rmdir()
