"""What is loaded when: a tool that is quick to start and never loads a framework itself."""

import subprocess
import sys

import pytest

HEAVY = {"keras", "tensorflow", "jax", "torch", "numpy", "plotly", "jinja2", "rich", "psutil"}
FRAMEWORKS = {"keras", "tensorflow", "jax", "torch"}


def loaded_by(code, *arguments, cwd=None):
    text = f"{code}\nimport sys; print('LOADED', *{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", text, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.rpartition("LOADED")[2].split())


def test_import_memfit_loads_nothing_heavy():
    assert loaded_by("import memfit") & HEAVY == set()


def test_help_loads_nothing_heavy():
    code = (
        "import memfit.cli\ntry:\n    memfit.cli.main(['--help'])\nexcept SystemExit:\n    pass\n"
    )

    assert loaded_by(code) & HEAVY == set()


@pytest.mark.parametrize("command", ["report", "diagnose", "runs"])
def test_reading_a_run_loads_no_framework(memfit, command):
    memfit("run", "--quiet", memfit.script("pass"))

    loaded = loaded_by(f"import memfit.cli; memfit.cli.main(['{command}'])", cwd=memfit.cwd)

    assert loaded & FRAMEWORKS == set()


def test_the_agent_loads_nothing_before_the_script_imports_a_framework(memfit):
    script = memfit.script("import sys; print(*{name.split('.')[0] for name in sys.modules})")

    loaded = set(memfit("run", "--quiet", script).stdout.split())

    assert loaded & HEAVY == set()


def test_the_agent_loads_no_framework_that_the_script_did_not(memfit):
    script = memfit.script("import jax, sys; print(*{name.split('.')[0] for name in sys.modules})")

    loaded = set(memfit("run", "--quiet", script).stdout.split())

    assert loaded & FRAMEWORKS == {"jax"}
