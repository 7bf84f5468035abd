"""What lint says of a script is found without running or importing anything."""

import os

import pytest

from memfit.supervise.lint_script import ScriptFile, lint_files, read_script_files

LEAKY = "import gc, keras\ngc.disable()\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return tmp_path


def write(folder, **texts):
    """Writes files: `data_of_app` is app/data.py, `init_of_app` is app/__init__.py."""
    for name, text in texts.items():
        path = folder.joinpath(*name.replace("init", "__init__").split("_of_")[::-1])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(text)


def files(*command):
    return [source.file for source in read_script_files(command)]


def hints_on(*command):
    return [hint for hints in lint_files(read_script_files(command)) for hint in hints]


def test_a_hint_reports_its_rule_its_cause_and_its_place(folder):
    write(folder, train=LEAKY)

    (hint,) = hints_on("train.py", "--epochs", "3")

    assert (hint.code, hint.cause) == ("MF601", "uncollected-garbage")
    assert (hint.file, hint.line) == ("train.py", 2)
    assert "gc.disable()" in hint.message


def test_what_the_script_imports_from_its_own_folder_is_looked_at_too(folder):
    write(
        folder,
        train="import data\nfrom models import unet\nimport os, keras\ndef f():\n    import late\n",
        data=LEAKY,
        init_of_models="",
        unet_of_models=LEAKY,
        late="",
        unused="",
    )

    assert files("train.py") == [
        "train.py",
        "data.py",
        "models/__init__.py",
        "models/unet.py",
        "late.py",
    ]
    assert [hint.file for hint in hints_on("train.py")] == ["data.py", "models/unet.py"]


def test_files_are_named_as_a_user_in_the_working_folder_would(folder, monkeypatch):
    write(folder, train_of_code="import data", data_of_code="")
    (folder / "here").mkdir()

    inside = files("code/train.py")
    dotted = files("./code/train.py")
    whole = files(str(folder / "code" / "train.py"))
    monkeypatch.chdir(folder / "here")
    beside = files("../code/train.py")

    assert inside == dotted == whole == ["code/train.py", "code/data.py"]
    assert beside == ["../code/train.py", str(folder / "code" / "data.py")]


def test_a_module_is_found_with_what_it_imports(folder):
    write(
        folder,
        init_of_app="",
        train_of_app="from . import data\nfrom .nets import build\nfrom app.tools import x\n",
        data_of_app="",
        nets_of_app="",
        tools_of_app="",
    )

    assert files("-m", "app.train", "--fast") == [
        "app/train.py",
        "app/data.py",
        "app/nets.py",
        "app/tools.py",
    ]


def test_a_package_runs_its_main(folder):
    write(folder, **{"__main___of_app": "import keras"})

    assert files("-m", "app") == ["app/__main__.py"]
    assert files("app") == ["app/__main__.py"]


def test_a_module_is_found_on_pythonpath(folder, monkeypatch):
    write(folder, train_of_src="")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "src"]))

    assert files("-m", "train") == ["src/train.py"]


def test_of_a_launcher_the_script_that_it_starts_is_looked_at(folder):
    write(folder, train="")

    assert files("-m", "torch.distributed.run", "--nproc", "2", "train.py") == ["train.py"]


@pytest.mark.parametrize(
    "command",
    [(), ("-m",), ("-m", "pytest"), ("-c", "pass"), ("missing.py",), ("-m", ""), ("\0",)],
    ids=str,
)
def test_a_command_without_a_script_of_the_users_gives_nothing(folder, command):
    assert files(*command) == []


@pytest.mark.parametrize("text", [b"def broken(:\n", b"\xff\xfe\x00", b"# coding: nonsense\n"])
def test_a_script_that_cannot_be_read_gives_no_hints(folder, text):
    (folder / "train.py").write_bytes(text)

    assert hints_on("train.py") == []


def test_a_script_that_cannot_be_parsed_says_so_by_itself(folder):
    write(folder, train="import data\n", data="def broken(:\n")

    assert hints_on("train.py") == []


def test_large_files_are_passed_over(folder):
    write(folder, train="import small, large", small=LEAKY, large=LEAKY + "#" * 1_000_000)

    assert files("train.py") == ["train.py", "small.py"]


def test_only_so_many_files_are_looked_at(folder):
    write(folder, **{f"m{number}": "" for number in range(80)})
    write(folder, train="\n".join(f"import m{number}" for number in range(80)))

    assert len(files("train.py")) == 50


def test_a_file_is_looked_at_once(folder):
    write(folder, train="import train, data\nimport data\nfrom data import x\n", data="")

    assert files("train.py") == ["train.py", "data.py"]


def test_an_error_inside_lint_is_no_matter_of_the_run():
    sources = [ScriptFile("a.py", None), ScriptFile("b.py", LEAKY)]

    assert [len(hints) for hints in lint_files(sources)] == [0, 1]
