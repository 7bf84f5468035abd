"""Samples of this process, and how far its training is."""

import os

from memfit.agent.sampler import Counters, Sampler


def test_a_sample_is_of_this_process_and_has_the_progress():
    counters = Counters(fit=1, epoch=2, step=3, steps_before=10)

    sample = Sampler(counters).take(0.25)

    assert sample.pid == os.getpid()
    assert sample.process.rss_bytes > 0
    assert (sample.progress.epoch, sample.progress.total_steps) == (2, 13)
    assert sample.probe_s == 0.25


def test_children_are_read_only_when_asked_for():
    sampler = Sampler(Counters())

    assert sampler.take(0.0).children is None
    assert sampler.take(0.0, reads_children=True).children is not None


def test_the_first_sample_is_due_and_the_last_one_is_kept():
    sampler = Sampler(Counters())
    assert sampler.is_due
    assert sampler.last is None

    sample = sampler.take(0.0)

    assert sampler.last is sample


def test_a_training_has_begun_once_a_step_is_counted():
    counters = Counters()
    sampler = Sampler(counters)
    assert not sampler.has_begun

    counters.updates += 1

    assert sampler.has_begun


def test_a_loop_without_steps_is_seen_by_lines_that_come_back():
    sampler = Sampler(Counters())

    for line in ("a.py:1", "a.py:2", "a.py:1", "a.py:2", "a.py:1"):
        assert not sampler.has_begun
        sampler._note_line(line)

    assert sampler.has_begun


def test_the_steps_of_an_epoch_that_is_over_stay_counted():
    counters = Counters(step=7)

    counters.end_epoch()

    assert counters.freeze().total_steps == 7
    assert counters.step is None
