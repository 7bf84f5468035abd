"""`memfit run` leaves a script exactly as it is: arguments, streams, folder, exit code."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from memfit.record.evidence import Hinted

SELF_PORTRAIT = """
import json, os, sys, __main__
print(json.dumps({
    "argv": sys.argv,
    "name": __name__,
    "main_file": __main__.__file__,
    "is_main": sys.modules["__main__"].__dict__ is globals(),
    "spec": __spec__ and __spec__.name,
    "path": sys.path,
    "cwd": os.getcwd(),
    "stdin": sys.stdin.read(),
    "interpreter": sys.executable,
    "flags": str(sys.flags),
    "threads": __import__("threading").active_count(),
}))
sys.exit(5)
"""


def portrait(command, cwd):
    done = subprocess.run(
        command, cwd=cwd, input="typed\n", capture_output=True, text=True, check=False
    )
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("how", [["script.py"], ["-m", "script"], ["./script.py"]])
def test_a_script_sees_itself_as_without_memfit(memfit, how):
    memfit.script(SELF_PORTRAIT)
    arguments = [*how, "--epochs", "3", "--out", "mine", "-m", "x"]

    plain = portrait([sys.executable, *arguments], memfit.cwd)
    watched = portrait([*memfit.command, "run", "--quiet", *arguments], memfit.cwd)

    assert watched == plain


def test_a_folder_with_a_main_runs_as_python_runs_it(memfit):
    (memfit.cwd / "app").mkdir()
    (memfit.cwd / "app" / "__main__.py").write_text("import sys; print(sys.argv[0])")

    assert memfit("run", "--quiet", "app").stdout == "app\n"


@pytest.mark.parametrize(
    ("ending", "code"),
    [("", 0), ("sys.exit(0)", 0), ("sys.exit(3)", 3), ("sys.exit('why')", 1), ("1/0", 1)],
)
def test_the_exit_code_is_the_scripts_own(memfit, ending, code):
    ran = memfit.run(memfit.script(f"import sys\n{ending}\n"))

    assert ran.code == code
    assert ran.result["exit"] == {"code": code, "signal": None}


def test_output_of_the_script_is_untouched_and_memfits_goes_to_stderr(memfit):
    memfit.script("import sys; print('out'); print('err', file=sys.stderr)")

    done = memfit("run", "script.py")

    assert done.stdout == "out\n"
    assert done.stderr.startswith("err\n")
    assert "memfit · script.py" in done.stderr


def test_quiet_says_nothing(memfit):
    memfit.script("print('out')")

    done = memfit("run", "--quiet", "script.py")

    assert (done.stdout, done.stderr) == ("out\n", "")


def test_a_syntax_error_gives_pythons_own_traceback(memfit):
    memfit.script("def broken(:\n")

    plain = subprocess.run(
        [sys.executable, "script.py"], cwd=memfit.cwd, capture_output=True, text=True, check=False
    )
    watched = memfit("run", "--quiet", "script.py")

    assert watched.stderr == plain.stderr
    assert watched.returncode == plain.returncode == 1


def test_a_users_own_sitecustomize_still_runs(memfit):
    folder = memfit.cwd / "own"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import builtins; builtins.OWN = 'here'\n")

    done = memfit("run", "--quiet", memfit.script("print(OWN)"), env={"PYTHONPATH": str(folder)})

    assert done.stdout == "here\n"


def test_multiprocessing_with_spawn_works(memfit):
    script = memfit.script(
        "import multiprocessing as mp\n"
        "def double(x): return 2 * x\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(2) as pool: print(pool.map(double, [1, 2]))\n"
    )

    assert memfit("run", "--quiet", script).stdout == "[2, 4]\n"


def test_children_are_seen_and_counted(memfit):
    script = memfit.script(
        "import subprocess, sys, time\n"
        "child = 'import time; x = bytearray(b\"x\") * 60_000_000; time.sleep(3)'\n"
        "subprocess.run([sys.executable, '-c', child])\n"
    )

    ran = memfit.run(script)

    most = max(sample.children_held_bytes for sample in ran.recording.outside)
    assert most > 60_000_000
    assert ran.result["peak_bytes"] > 70_000_000


def test_training_in_a_process_that_the_script_starts_is_followed(memfit):
    memfit.script(
        "import numpy as np, keras\n"
        "model = keras.Sequential([keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\n"
        "x = np.ones((8, 2), 'float32')\n"
        "model.fit(x, x[:, :1], epochs=3, verbose=0)\n",
        "train.py",
    )
    launcher = memfit.script(
        "import subprocess, sys; sys.exit(subprocess.run([sys.executable, 'train.py']).returncode)"
    )

    ran = memfit.run(launcher, backend="jax")

    assert ran.code == 0, ran.stderr
    assert [one["name"] for one in ran.result["phases"]] == ["fit", "epoch", "epoch", "epoch"]


def test_a_fork_of_the_training_does_not_write_into_its_recording(memfit):
    script = memfit.script(
        "import os, numpy as np, keras\n"
        "model = keras.Sequential([keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\n"
        "x = np.ones((8, 2), 'float32')\n"
        "model.fit(x, x[:, :1], epochs=2, verbose=0)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    raise SystemExit(0)\n"
        "os.waitpid(pid, 0)\n"
    )

    ran = memfit.run(script, backend="torch", env={"PYTHONWARNINGS": "ignore"})

    assert ran.code == 0, ran.stderr
    assert len(list(ran.folder.glob("agent-*.jsonl"))) == 1
    ends = (ran.folder / next(ran.folder.glob("agent-*.jsonl"))).read_text().count('"kind":"end"')
    assert ends == 1


def test_keras_imported_late_and_through_tensorflow_is_hooked(memfit):
    script = memfit.script(
        "import tensorflow as tf, numpy as np\n"
        "def train():\n"
        "    from tensorflow import keras\n"
        "    model = tf.keras.Sequential([keras.layers.Dense(1)])\n"
        "    model.compile('sgd', 'mse')\n"
        "    x = np.ones((8, 2), 'float32')\n"
        "    model.fit(x, x[:, :1], epochs=2, verbose=0)\n"
        "train()\n"
    )

    ran = memfit.run(script)

    assert [one["name"] for one in ran.result["phases"]] == ["fit", "epoch", "epoch"]


FAILING_FIT = """
import numpy as np, keras
class Fails(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        raise RuntimeError("mine")
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.ones((8, 2), "float32")
for _ in range(2):
    try:
        model.fit(x, x[:, :1], epochs=2, verbose=0, callbacks=[Fails()])
    except RuntimeError as error:
        print("caught", error)
model.evaluate(x, x[:, :1], verbose=0)
"""


def test_after_a_failed_fit_the_next_call_is_marked_right(memfit):
    ran = memfit.run(memfit.script(FAILING_FIT), backend="jax")

    assert ran.stdout == "caught mine\ncaught mine\n"
    assert [one["name"] for one in ran.result["phases"]] == [
        *("fit", "epoch") * 2,
        "evaluate",
    ]


def test_an_error_inside_memfit_is_recorded_and_the_training_goes_on(memfit):
    script = memfit.script(
        "import memfit.agent.sampler as sampler\n"
        "def broken(*_): raise RuntimeError('inside memfit')\n"
        "sampler.read_process = broken\n"
        "import numpy as np, keras\n"
        "model = keras.Sequential([keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\n"
        "x = np.ones((8, 2), 'float32')\n"
        "model.fit(x, x[:, :1], epochs=3, verbose=0)\n"
        "print('trained')\n"
    )

    ran = memfit.run(script, backend="jax")

    assert ran.code == 0
    assert ran.stdout == "trained\n"
    assert "errors inside memfit" in ran.stderr
    assert "inside memfit" in ran.recording.troubles[0].message


def test_figures_are_in_the_logs_of_keras_only_when_asked_for(memfit):
    script = memfit.script(
        "import numpy as np, keras\n"
        "model = keras.Sequential([keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\n"
        "x = np.ones((8, 2), 'float32')\n"
        "print(list(model.fit(x, x[:, :1], verbose=0).history))\n"
    )

    assert memfit.run(script, backend="jax").stdout == "['loss']\n"
    asked = memfit("run", "--quiet", "--logs", script, backend="jax")
    assert asked.stdout == "['loss', 'memory_mb', 'memory_peak_mb']\n"


def test_a_csv_log_that_is_continued_keeps_its_columns(memfit):
    script = memfit.script(
        "import numpy as np, keras\n"
        "model = keras.Sequential([keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\n"
        "x = np.ones((8, 2), 'float32')\n"
        "log = keras.callbacks.CSVLogger('log.csv', append=True)\n"
        "model.fit(x, x[:, :1], verbose=0, callbacks=[log])\n"
    )
    (memfit.cwd / "log.csv").write_text("epoch,loss,val_loss\n0,0.5,NA\n")

    memfit.run(script, backend="jax")

    rows = (memfit.cwd / "log.csv").read_text().splitlines()
    assert [len(row.split(",")) for row in rows] == [3, 3, 3]


def test_check_exits_with_3_when_memory_grows(memfit):
    script = memfit.script(
        "import time\nkept = []\n"
        "for _ in range(60): kept.append(bytearray(b'x' * 3_000_000)); time.sleep(0.1)\n"
    )

    ran = memfit.run(script, options=["--check"])

    assert ran.result["verdict"] == "growing"
    assert ran.code == 3


def test_check_exits_with_0_when_memory_is_steady(memfit):
    script = memfit.script("import time\nfor _ in range(90): time.sleep(0.1)\n")

    ran = memfit.run(script, options=["--check"])

    assert ran.result["verdict"] == "steady"
    assert ran.code == 0


def test_pss_is_recorded_on_request(memfit):
    script = memfit.script("import time; time.sleep(1.5)")

    plain = memfit("run", "--quiet", "--out", "plain", script)
    ran = memfit.run(script, options=["--pss"])

    assert plain.returncode == 0
    assert any(sample.proportional for sample in ran.recording.outside)


def test_a_limit_that_was_asked_for_is_judged_against(memfit):
    script = memfit.script("import time; x = bytearray(b'x' * 95_000_000); time.sleep(1)")

    ran = memfit.run(script, options=["--limit", "100MB", "--check"])

    assert ran.code == 3
    assert ran.result["verdict"] == "near_limit"
    assert (ran.result["limit_bytes"], ran.result["limit_source"]) == (100_000_000, "asked for")


def test_what_lint_says_of_the_script_is_in_the_recording(memfit):
    script = memfit.script(
        "import gc, time\ngc.disable()\ntime.sleep(1.5)\nif len('') == 1:\n    import keras\n"
    )

    recording = memfit.run(script.name).recording

    (hint,) = recording.of(Hinted)
    assert (hint.code, hint.file, hint.line) == ("MF601", "script.py", 2)
    assert recording.troubles == ()


def test_data_in_memory_is_reported_with_the_stream_for_its_very_table(memfit):
    column = np.zeros(8_000_000)
    table = pa.table(dict.fromkeys(("a", "b", "c", "label"), column))
    pq.write_table(table, memfit.cwd / "t.parquet", row_group_size=100_000)
    script = memfit.script(
        "import keras\n"
        "import pandas as pd\n"
        "df = pd.read_parquet('t.parquet')\n"
        "y = df.pop('label')\n"
        "model = keras.Sequential([keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\n"
        "model.fit(df.to_numpy(), y, batch_size=400_000, verbose=0)\n"
    )

    findings = memfit.run(script.name, backend="tensorflow").result["findings"]

    (found,) = [one for one in findings if one["code"] == "data-in-memory"]
    assert (found["file"], found["line"], found["lint"]) == ("script.py", 7, ["MF104"])
    assert found["fix"] == (
        "Stream it from disk: data = memfit.stream('t.parquet', batch_size=400000, shuffle=True, "
        "label='label', features='matrix'), then model.fit(data, ...)."
    )
