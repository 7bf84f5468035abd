import pytest
from msgspec import structs

from memfit.measure.process import ProcessMemory
from memfit.record.recording import ProcessRecording, Recording
from memfit.record.samples import FORMAT, End, Exit, Header, Mark, Sample, Software, Trouble

WATCHER_HEADER = Header(format=FORMAT, role="supervisor", pid=1, t_s=10.0, wall_time_s=1e9)
AGENT_HEADER = Header(format=FORMAT, role="agent", pid=7, t_s=12.0, wall_time_s=1e9 + 2)
ENDED = Exit(t_s=40.0, code=0)


def sample(t_s, pid=7):
    return Sample(t_s=t_s, pid=pid, process=ProcessMemory(rss_bytes=4096))


def supervisor(*entries):
    return ProcessRecording("supervisor.jsonl", (WATCHER_HEADER, *entries))


def agent(*entries, pid=7, t_s=12.0):
    header = structs.replace(AGENT_HEADER, pid=pid, t_s=t_s)
    return ProcessRecording(f"agent-{pid}.jsonl", (header, *entries))


def fit(t_s):
    return Mark(t_s=t_s, event="begin", phase="fit", number=1)


def test_what_was_read_inside_and_outside_is_kept_apart():
    recording = Recording.merge(
        "run", [agent(sample(13.0), sample(15.0)), supervisor(sample(14.0))]
    )

    assert [one.t_s for one in recording.inside] == [13.0, 15.0]
    assert [one.t_s for one in recording.outside] == [14.0]


def test_a_run_lasts_from_the_first_to_the_last_entry_of_all_files():
    recording = Recording.merge("run", [agent(End(41.0, 0.1)), supervisor(ENDED)])

    assert (recording.begin_t_s, recording.end_t_s) == (10.0, 41.0)
    assert recording.duration_s == 31.0


def test_errors_of_both_files_are_reported_in_the_order_of_time():
    recording = Recording.merge(
        "run",
        [
            agent(Trouble(20.0, "sample", "second"), Trouble(30.0, "sample", "third")),
            supervisor(Trouble(15.0, "sample", "first")),
        ],
    )

    assert [trouble.message for trouble in recording.troubles] == ["first", "second", "third"]


def test_the_last_software_counts_as_more_is_loaded_later():
    early = Software(13.0, None, {})
    late = Software(16.0, "jax", {"jax": "0.10.2"})

    assert Recording.merge("run", [agent(early, late), supervisor()]).software == late


def test_the_supervisor_says_what_was_run_and_how_it_ended():
    recording = Recording.merge("run", [agent(fit(13.0)), supervisor(ENDED)])

    assert recording.header == WATCHER_HEADER
    assert recording.exit == ENDED


def test_without_a_supervisor_the_training_process_speaks_for_the_run():
    recording = Recording.merge("run", [agent(fit(13.0))])

    assert recording.header == AGENT_HEADER
    assert recording.exit is None


def test_a_training_in_another_process_than_the_scripts_is_followed_there():
    script, trainer = agent(sample(13.0), pid=7), agent(fit(14.0), sample(15.0, 8), pid=8, t_s=13.5)

    recording = Recording.merge("run", [script, trainer, supervisor()])

    assert [one.pid for one in recording.inside] == [8]
    assert recording.marks == (fit(14.0),)


def test_where_no_process_trains_the_first_one_begun_is_taken():
    worker, script = agent(sample(14.0, 3), pid=3, t_s=13.0), agent(sample(13.0, 7), pid=7)

    recording = Recording.merge("run", [worker, script, supervisor()])

    assert [one.pid for one in recording.inside] == [7]


def test_a_run_of_which_nothing_was_written_is_empty():
    assert Recording.merge("run", []) == Recording("run")


def test_several_files_of_the_process_that_trains_are_one_training():
    first = agent(fit(13.0), sample(14.0), t_s=12.0)
    second = agent(fit(23.0), sample(24.0), t_s=22.0)

    recording = Recording.merge("run", [second, first])

    assert [one.t_s for one in recording.inside] == [14.0, 24.0]
    assert recording.marks == (fit(13.0), fit(23.0))


def test_an_agent_that_wrote_nothing_does_not_hide_the_one_that_did():
    silent = ProcessRecording("agent-3.jsonl")

    recording = Recording.merge("run", [silent, agent(sample(13.0)), supervisor()])

    assert [one.t_s for one in recording.inside] == [13.0]


@pytest.mark.parametrize("entries", [(), (sample(13.0),)], ids=["empty file", "damaged header"])
def test_an_agent_without_a_header_does_not_hide_the_supervisor(entries):
    headless = ProcessRecording("agent-7.jsonl", entries)

    recording = Recording.merge("run", [headless, supervisor(sample(14.0), ENDED)])

    assert recording.exit == ENDED
    assert [one.t_s for one in recording.outside] == [14.0]
