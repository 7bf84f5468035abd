"""Kills at any moment: by the kernel, of the script, of the supervisor."""

import os
import signal
import subprocess
import time

import pytest

from memfit.diagnose.diagnosis import diagnose
from memfit.record.read_run import read_run

LEAKING = """
import time
kept = []
while True:
    kept.append(bytearray(b"x" * 2_000_000))
    time.sleep(0.2)
"""
TRAINING = """
import time
import numpy as np, keras
class Pause(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print("epoch", epoch + 1, flush=True)
        time.sleep(0.2)
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.ones((8, 2), "float32")
model.fit(x, x[:, :1], epochs=12, verbose=0, callbacks=[Pause()])
print("finished", flush=True)
"""


HOARDING = """
import time
import torch
weight = torch.zeros(64, requires_grad=True)
sgd = torch.optim.SGD([weight], lr=0.1)
outputs = []
while True:
    loss = (weight - 1).square().sum()
    loss.backward()
    sgd.step()
    outputs.append(torch.ones(300_000))
    time.sleep(0.02)
"""


def test_a_kill_by_the_kernel_is_reported_with_size_limit_and_growth(memfit, limited_group):
    def join():
        (limited_group / "cgroup.procs").write_text(str(os.getpid()))

    ran = memfit.run(memfit.script(LEAKING), preexec_fn=join)

    assert ran.code == -signal.SIGKILL
    result = ran.result
    assert result["verdict"] == "killed"
    assert result["exit"] == {"code": None, "signal": "SIGKILL"}
    assert result["limit_bytes"] == pytest.approx(120_000_000, abs=4096)
    assert result["limit_source"].startswith("cgroup v")
    assert result["growth"]["bytes_per_s"] == pytest.approx(10_000_000, rel=0.5)
    killed = next(one for one in result["findings"] if one["code"] == "killed")
    assert killed["confidence"] == "certain"
    assert killed["evidence"]["group_oom_kills"] == 1
    assert "Killed by the kernel, out of memory in its control group" in ran.stderr
    assert "it was growing" in ran.stderr


@pytest.mark.parametrize("limited_group", [900_000_000], indirect=True)
def test_a_training_that_the_kernel_kills_is_reported_with_the_cause_and_its_line(
    memfit, limited_group
):
    def join():
        (limited_group / "cgroup.procs").write_text(str(os.getpid()))

    ran = memfit.run(memfit.script(HOARDING), preexec_fn=join)

    assert ran.code == -signal.SIGKILL
    killed, cause, *_ = ran.result["findings"]
    assert killed["code"] == "killed"
    assert (cause["code"], cause["file"], cause["line"]) == ("held-tensors", "script.py", 11)
    assert cause["evidence"]["holder"] == "outputs (global of script.py)"


def test_a_kill_by_a_user_is_not_blamed_on_memory(memfit):
    script = memfit.script("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")

    ran = memfit.run(script)

    assert ran.result["verdict"] == "killed"
    assert "counted no out-of-memory kill" in ran.result["findings"][0]["message"]


def start_training(memfit):
    memfit.script(TRAINING)
    return subprocess.Popen(
        [*memfit.command, "run", "--quiet", "--out", "recorded", "script.py"],
        cwd=memfit.cwd,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "KERAS_BACKEND": "jax"},
    )


def test_killing_the_supervisor_ends_the_script_and_leaves_a_recording_to_read(memfit):
    """`kill -9` of what a scheduler started must end the script, as it would without memfit."""
    with start_training(memfit) as process:
        while process.stdout.readline() != "epoch 3\n":
            pass

        process.kill()
        rest = process.stdout.read()

    assert "finished" not in rest
    recording = read_run(memfit.cwd / "recorded")
    assert recording.exit is None
    assert [mark.number for mark in recording.marks if mark.phase == "epoch"][-1] >= 3
    assert diagnose(recording).verdict in ("steady", "unknown")


def test_killing_the_training_loses_at_most_the_last_second(memfit):
    with start_training(memfit) as process:
        while process.stdout.readline() != "epoch 8\n":
            pass

        agent = next((memfit.cwd / "recorded").glob("agent-*.jsonl"))
        killed_s = time.monotonic()
        os.kill(int(agent.stem.split("-")[1]), signal.SIGKILL)

    recording = read_run(memfit.cwd / "recorded")
    assert recording.exit.signal == "SIGKILL"
    assert [mark.number for mark in recording.marks if mark.event == "end"][-1] == 8
    assert killed_s - recording.inside[-1].t_s < 1.0
    assert killed_s - recording.outside[-1].t_s < 1.0
    assert recording.notes == ()
