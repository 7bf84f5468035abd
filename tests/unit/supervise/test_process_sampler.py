"""Samples of another process, from outside."""

import subprocess
import sys

import pytest

from memfit.supervise.process_sampler import ProcessSampler


@pytest.fixture
def child():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.communicate()


def test_a_sample_is_of_the_process_that_was_named(child):
    sampler = ProcessSampler()
    sampler.attach(child.pid)

    sample = sampler.take()

    assert sample.pid == child.pid
    assert sample.process.rss_bytes > 0
    assert sample.proportional is None


def test_a_process_that_has_ended_gives_no_sample(child):
    sampler = ProcessSampler()
    sampler.attach(child.pid)
    child.communicate(b"\n")

    assert sampler.take() is None


@pytest.mark.skipif(sys.platform != "linux", reason="PSS is read from /proc")
def test_shared_pages_are_counted_once_where_that_is_asked_for_but_not_every_time(child):
    sampler = ProcessSampler(reads_proportional=True)
    sampler.attach(child.pid)

    first, second = sampler.take(), sampler.take()

    assert first.proportional.pss_bytes > 0
    assert second.proportional is None
