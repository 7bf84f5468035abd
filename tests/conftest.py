"""How tests run memfit: as a user would, in a process of its own."""

import contextlib
import itertools
import json
import os
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

from memfit.record.read_run import read_run

TESTS = Path(__file__).parent
SCRIPTS = TESTS / "scripts"
# Where control groups are.
V1 = Path("/sys/fs/cgroup/memory")
V2 = Path("/sys/fs/cgroup")
BACKENDS = ("tensorflow", "jax", "torch")
# One thread each: two cores shared by several tests make OpenMP spin.
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
# For JAX where programs run once or twice and no memory is measured: compiling takes the time.
SOON_COMPILED = {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1"}
# Set by `make test-long`: what TensorFlow runs eagerly in `make test` is compiled.
COMPILES = "MEMFIT_TESTS_COMPILE"
# `make test` tries the same examples each time; MEMFIT_TESTS_EXAMPLES=5000 tries others.
EXAMPLES = int(os.environ.get("MEMFIT_TESTS_EXAMPLES", "0"))
settings.register_profile("memfit", derandomize=not EXAMPLES, max_examples=EXAMPLES or 100)
settings.load_profile("memfit")
# A test that does not say which backend it needs takes the one that starts soonest.
os.environ.setdefault("KERAS_BACKEND", "jax")


def compiled_once(folder):
    """For JAX: programs that are alike, as those of a model that a test builds twice, are kept."""
    return {
        "JAX_COMPILATION_CACHE_DIR": str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def compile_options(**options):
    """Options for `compile`: on TensorFlow a case that says nothing else runs eagerly.

    That is quick there, and the graphs of such cases wait for `make test-long`. On JAX eager
    steps are the slow ones.
    """
    is_quick = os.environ["KERAS_BACKEND"] == "tensorflow" and COMPILES not in os.environ
    says = {"run_eagerly", "jit_compile", "steps_per_execution"} & options.keys()
    return {**options, "run_eagerly": True} if is_quick and not says else options


def environment_of(backend):
    """The environment of a process that trains on a backend, as its users have it.

    Those of JAX and torch rarely have TensorFlow, which Keras would import in the first `fit`.
    """
    hidden = [] if backend == "tensorflow" else [str(TESTS / "without_tensorflow")]
    paths = [*hidden, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        **QUIET,
        "KERAS_BACKEND": backend,
        "PYTHONPATH": os.pathsep.join(paths),
    }


def pytest_collection_modifyitems(items):
    """What trains comes first, and what is short fills the gaps at the end."""
    items.sort(key=lambda item: (TESTS / "unit") in item.path.parents)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Tests of a module and a backend share a process, and with it what they ran and kept."""
    from xdist.scheduler import LoadScopeScheduling

    class ByModuleAndBackend(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            module, _, name = nodeid.partition("::")
            return module, next((one for one in BACKENDS if one in name.partition("[")[2]), None)

    config.option.loadscopereorder = False  # the order of the items counts
    return ByModuleAndBackend(config, log)


@contextlib.contextmanager
def two_at_a_time(run, *choices):
    """Begins `run` for every combination of the choices, as many at once as CI has cores."""
    with ThreadPoolExecutor(2) as pool:
        yield {job: pool.submit(run, *job) for job in itertools.product(*choices)}


@dataclass(frozen=True)
class Ran:
    """What a run of memfit left behind."""

    code: int
    stdout: str
    stderr: str
    folder: Path

    @property
    def recording(self):
        return read_run(self.folder)

    @property
    def result(self):
        return json.loads(self.folder.with_suffix(".json").read_text())


@dataclass(frozen=True)
class Memfit:
    """Runs memfit in a folder of its own."""

    cwd: Path

    def __call__(self, *arguments, backend=None, **how):
        environment = {**environment_of(backend or "tensorflow"), **how.pop("env", {})}
        return subprocess.run(
            [*self.command, *map(str, arguments)],
            cwd=self.cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
            **how,
        )

    @property
    def command(self):
        return [sys.executable, "-m", "memfit"]

    def script(self, text, name="script.py"):
        path = self.cwd / name
        path.write_text(text)
        return path

    def run(self, *arguments, options=(), backend=None, **how):
        """`memfit run` with a recording and a JSON result in known places."""
        folder = self.cwd / "recorded"
        done = self(
            "run",
            *("--out", folder, "--json", folder.with_suffix(".json")),
            *options,
            *arguments,
            backend=backend,
            **how,
        )
        return Ran(done.returncode, done.stdout, done.stderr, folder)


@pytest.fixture
def memfit(tmp_path):
    return Memfit(tmp_path)


@pytest.fixture(scope="module", params=BACKENDS)
def tour(request, tmp_path_factory):
    """One run of tests/scripts/tour.py on each backend, for all tests of a module."""
    memfit = Memfit(tmp_path_factory.mktemp(f"tour-{request.param}"))
    ran = memfit.run(SCRIPTS / "tour.py", 15_000_000, 10, backend=request.param)
    assert ran.code == 0, ran.stderr
    return request.param, ran


@pytest.fixture
def limited_group(request):
    """A real control group that allows 120 MB, or what the test asks for; removed afterwards."""
    limit_bytes = getattr(request, "param", 120_000_000)
    is_version_1 = (V1 / "memory.limit_in_bytes").exists()
    folder = (V1 if is_version_1 else V2) / f"memfit-test-{uuid.uuid4().hex[:8]}"
    try:
        folder.mkdir()
        limit = "memory.limit_in_bytes" if is_version_1 else "memory.max"
        (folder / limit).write_text(str(limit_bytes))
        if not is_version_1 and (folder / "memory.swap.max").exists():
            (folder / "memory.swap.max").write_text("0")
    except OSError as error:
        if folder.exists():
            folder.rmdir()
        pytest.skip(f"no control group can be made here: {error}")
    yield folder
    folder.rmdir()
