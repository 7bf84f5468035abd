"""`memfit lint` as a user runs it: files, folders, exit codes, what it loads."""

import json
import subprocess
import sys

import pytest

LEAK = "import gc, keras\ngc.disable()\n"
CLEAN = "import keras\n"
HINT = (
    "train.py:2:1: MF601 gc.disable() turns the collector off, and nothing collects: models and "
    "graphs that refer to themselves are never freed\n"
    "    fix: delete the line, or call gc.collect() at the end of every epoch\n"
)


def test_a_hint_is_printed_and_the_exit_code_is_1(memfit):
    memfit.script(LEAK, "train.py")

    done = memfit("lint", "train.py")

    assert done.returncode == 1
    assert done.stdout == f"{HINT}Found 1 hint in 1 file.\n"
    assert done.stderr == ""


def test_a_clean_script_exits_with_0(memfit):
    memfit.script(CLEAN, "train.py")

    done = memfit("lint", "train.py")

    assert (done.returncode, done.stdout) == (0, "Nothing found in 1 file.\n")


def test_a_folder_is_searched_but_not_its_hidden_folders_and_environments(memfit):
    for name in (
        *("src/a.py", "src/deep/b.py", "src/.git/c.py", "src/.venv/d.py"),
        *("src/lib/site-packages/e.py", "src/__pycache__/f.py", "src/notes.txt"),
    ):
        path = memfit.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LEAK)

    done = memfit("lint", "--json", "src", "src/a.py")

    assert [hint["file"] for hint in json.loads(done.stdout)] == ["src/a.py", "src/deep/b.py"]


def test_a_file_may_have_any_name(memfit):
    memfit.script(LEAK, "train")

    assert memfit("lint", "train").returncode == 1


def test_json_is_a_list_even_when_nothing_is_found(memfit):
    memfit.script(CLEAN, "train.py")

    done = memfit("lint", "train.py", "--json")

    assert (done.returncode, json.loads(done.stdout)) == (0, [])


def test_a_missing_file_is_wrong_use_and_nothing_is_linted(memfit):
    memfit.script(LEAK, "train.py")

    done = memfit("lint", "train.py", "trian.py")

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "memfit: FILE must be a file or folder that exists. Received: 'trian.py'. "
        "Write it like: memfit lint train.py src\n"
    )


def test_a_folder_without_python_files_is_wrong_use(memfit):
    (memfit.cwd / "data").mkdir()

    done = memfit("lint", "data")

    assert done.returncode == 2
    assert done.stderr == (
        "memfit: A folder must contain files that end in .py, outside hidden folders and "
        "environments. Received: 'data'. Name the files one by one.\n"
    )


def test_no_file_at_all_shows_the_usage(memfit):
    done = memfit("lint")

    assert done.returncode == 2
    assert "usage: memfit lint" in done.stderr


def test_a_broken_file_is_named_and_the_others_are_still_linted(memfit):
    memfit.script("for x in\n", "broken.py")
    memfit.script(LEAK, "train.py")

    done = memfit("lint", "broken.py", "train.py")

    assert done.returncode == 1
    assert done.stdout.startswith("broken.py:1:")
    assert "MF001 this file cannot be read as Python: invalid syntax" in done.stdout
    assert HINT in done.stdout
    assert done.stdout.endswith("Found 2 hints in 2 of 2 files.\n")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"name = 'gr\xf6sser'\n", "invalid or missing encoding declaration"),
        (b"\n\n\nname = 'gr\xf6sser'\n", "byte 13 is not valid utf-8"),
        (b"# coding: no-such-code\n", "unknown encoding"),
        (b"x = 1\0\n", "null bytes"),
    ],
)
def test_a_file_that_cannot_be_decoded_is_a_hint(memfit, content, why):
    (memfit.cwd / "train.py").write_bytes(content)

    done = memfit("lint", "train.py")

    assert done.returncode == 1
    assert "train.py:1:1: MF001 this file cannot be read as Python: " in done.stdout
    assert why in done.stdout


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8-sig", "cp1252"])
def test_a_coding_cookie_and_a_byte_order_mark_are_heeded(memfit, encoding):
    cookie = "" if encoding == "utf-8-sig" else f"# -*- coding: {encoding} -*-\n"
    text = f"{cookie}name = 'größer'\n{LEAK}"
    (memfit.cwd / "train.py").write_bytes(text.encode(encoding))

    done = memfit("lint", "--json", "train.py")

    assert [hint["code"] for hint in json.loads(done.stdout)] == ["MF601"]


def test_lint_loads_neither_a_framework_nor_rich_nor_numpy(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(LEAK)
    heavy = ("keras", "tensorflow", "jax", "torch", "numpy", "rich", "plotly", "jinja2", "psutil")
    code = (
        "import sys, memfit.cli; memfit.cli.main(['lint', sys.argv[1]]); "
        f"print('LOADED', *[name for name in {heavy} if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines()[-1] == "LOADED"


def test_the_example_that_leaks_is_seen(memfit):
    from pathlib import Path

    example = Path(__file__).parents[2] / "examples" / "leaking.py"

    done = memfit("lint", "--json", example)

    assert [hint["code"] for hint in json.loads(done.stdout)] == ["MF203"]
