"""Accelerators set before their first use: on this machine, and through a fake at each seam.

The fakes answer as the documented functions do; nothing here has run on hardware.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from conftest import BACKENDS
from memfit.backends import chosen_backend_name
from memfit.backends.accelerators import jax as jax_devices
from memfit.errors import UsageError
from memfit.fitting.levers.accelerators import configure

GB = 10**9
DOCUMENT = Path(__file__).parents[2] / "docs" / "devices.md"
VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "JAX_PLATFORMS",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "XLA_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_ALLOCATOR",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
)
WITHOUT_ACCELERATOR = """
import importlib, sys
import memfit
from memfit.fitting.levers.accelerators import configure
from memfit.backends import chosen_backend_name, load

assert "keras" not in sys.modules
name = chosen_backend_name()
change = configure(on_demand=True)
framework = sys.modules.get(name)
assert str(change).endswith("can use here: nothing is configured"), change
adapter = load("devices", name)
is_up = getattr(adapter, "is_initialized", lambda: framework.cuda.is_initialized())
assert not is_up()
configure(limit="6GB"), configure(preallocate=0.5), configure(preallocate=False)
assert not is_up()
change.undo()

framework = importlib.import_module("jax.numpy" if name == "jax" else name)
framework.ones((1,))
late = str(configure(on_demand=True))
assert ("with one this line would come too late" in late) == (name != "torch"), late
print("good")
"""


def fake_tensorflow(fake):
    growth, logical = {}, {}
    names = {"/physical_device:GPU:0"}
    fake.module(
        "tensorflow",
        config=SimpleNamespace(
            get_visible_devices=lambda kind: [SimpleNamespace(name=name) for name in names],
            get_logical_device_configuration=lambda device: logical.get(device.name),
            set_logical_device_configuration=lambda device, value: logical.update(
                {device.name: value}
            ),
            LogicalDeviceConfiguration=SimpleNamespace,
            experimental=SimpleNamespace(
                get_memory_growth=lambda device: growth.get(device.name),
                set_memory_growth=lambda device, value: growth.update({device.name: value}),
            ),
        ),
    )
    context = SimpleNamespace(_initialized=False)
    fake.module("tensorflow.python.eager.context", context_safe=lambda: context)
    fake.start = lambda: setattr(context, "_initialized", True)
    fake.stay_away = names.clear
    return lambda: {
        **{f"growth of {name[-5:]}": value for name, value in growth.items() if value is not None},
        **{f"limit of {name[-5:]}": value[0].memory_limit for name, value in logical.items()},
    }


def fake_jax(fake):
    device = SimpleNamespace(platform="gpu", id=0)
    state = SimpleNamespace(is_up=False)
    fake.module("jax", local_devices=lambda: [device])
    fake.module("jax._src.xla_bridge", backends_are_initialized=lambda: state.is_up)
    plugin = fake.folder / "jax_cuda12_plugin-1.dist-info"
    plugin.mkdir(exist_ok=True)
    (plugin / "METADATA").write_text("Metadata-Version: 2.1\nName: jax-cuda12-plugin\nVersion: 1\n")
    (plugin / "entry_points.txt").write_text("[jax_plugins]\nxla_cuda12 = jax_plugins.xla_cuda12\n")
    (fake.folder / "nvidia0").touch()
    fake.monkeypatch.syspath_prepend(str(fake.folder))
    fake.monkeypatch.setattr(jax_devices, "device_folder", fake.folder)
    fake.start = lambda: setattr(state, "is_up", True)
    fake.stay_away = (fake.folder / "nvidia0").unlink
    return environment


def fake_torch(fake):
    state = SimpleNamespace(is_up=False, count=1, fractions={})

    def start():
        if not state.is_up:
            fake.read_at_start = environment()
        state.is_up = True

    def properties(index):
        start()
        return SimpleNamespace(total_memory=40 * GB)

    def set_fraction(fraction, index):
        start()
        state.fractions[f"fraction of GPU:{index}"] = fraction

    cuda = SimpleNamespace(
        device_count=lambda: state.count,
        is_initialized=lambda: state.is_up,
        get_device_properties=properties,
        get_per_process_memory_fraction=lambda index: 1.0,
        set_per_process_memory_fraction=set_fraction,
    )
    fake.module("torch", cuda=cuda)
    fake.start = start
    fake.stay_away = lambda: setattr(state, "count", 0)
    return lambda: {**environment(), **state.fractions}


def environment():
    return {name: os.environ[name] for name in VARIABLES if name in os.environ}


FAKES = {"tensorflow": fake_tensorflow, "jax": fake_jax, "torch": fake_torch}


class Fake:
    """A framework with one GPU of 40 GB; `read()` gives what was set."""

    def __init__(self, name, monkeypatch, folder):
        self.monkeypatch = monkeypatch
        self.folder = folder
        monkeypatch.setenv("KERAS_BACKEND", name)
        monkeypatch.delitem(sys.modules, "keras", raising=False)
        for variable in VARIABLES:  # set first, so that it is put back after the test
            monkeypatch.setenv(variable, "")
            monkeypatch.delenv(variable)
        self.set_driver([40 * GB])
        self.read = FAKES[name](self)

    def module(self, name, **attributes):
        self.monkeypatch.setitem(sys.modules, name, SimpleNamespace(**attributes))

    def set_driver(self, sizes_bytes):
        self.module(
            "pynvml",
            NVMLError=OSError,
            nvmlInit=lambda: None,
            nvmlDeviceGetCount=lambda: len(sizes_bytes),
            nvmlDeviceGetHandleByIndex=lambda index: sizes_bytes[index],
            nvmlDeviceGetMemoryInfo=lambda size: SimpleNamespace(used=0, total=size),
            nvmlDeviceGetName=lambda size: "card",
            nvmlDeviceGetComputeRunningProcesses=lambda size: [],
        )


@pytest.fixture
def fake(monkeypatch, tmp_path):
    return lambda name: Fake(name, monkeypatch, tmp_path)


PREALLOCATE, FRACTION = "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION"
SEGMENTS = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
SET = [
    ("tensorflow", {"on_demand": True}, {"growth of GPU:0": True}),
    ("tensorflow", {"on_demand": False}, {"growth of GPU:0": False}),
    ("tensorflow", {"preallocate": False}, {"growth of GPU:0": True}),
    ("tensorflow", {"limit": "6GiB"}, {"limit of GPU:0": 6 * 1024}),
    ("tensorflow", {"preallocate": 0.5}, {"limit of GPU:0": 20 * GB // 2**20}),
    ("jax", {"on_demand": True}, {PREALLOCATE: "false"}),
    ("jax", {"on_demand": False}, {PREALLOCATE: "true"}),
    ("jax", {"preallocate": False}, {PREALLOCATE: "false"}),
    ("jax", {"limit": "6GB"}, {FRACTION: "0.1500"}),
    ("jax", {"limit": "6GB", "on_demand": True}, {PREALLOCATE: "false", FRACTION: "0.1500"}),
    ("jax", {"preallocate": 0.5}, {PREALLOCATE: "true", FRACTION: "0.5000"}),
    ("torch", {"on_demand": True}, SEGMENTS),
    ("torch", {"on_demand": False}, {}),
    ("torch", {"preallocate": False}, SEGMENTS),
    ("torch", {"limit": "6GB"}, {"fraction of GPU:0": 0.15}),
    ("torch", {"limit": "6GB", "on_demand": True}, {**SEGMENTS, "fraction of GPU:0": 0.15}),
    ("torch", {"preallocate": 0.5}, {"fraction of GPU:0": 0.5}),
]


@pytest.mark.parametrize(("name", "asked", "expected"), SET)
def test_what_is_asked_reaches_the_framework(fake, name, asked, expected):
    framework = fake(name)

    change = configure(**asked)

    assert framework.read() == expected
    assert str(change).lower().startswith(f"{name} takes")
    assert "\n" not in str(change)


@pytest.mark.parametrize("name", FAKES)
def test_before_first_use_growth_is_undone(fake, name):
    framework = fake(name)

    configure(on_demand=True).undo()

    assert framework.read() == {}


@pytest.mark.parametrize("name", FAKES)
def test_after_first_use_growth_is_refused_with_what_to_do(fake, name):
    framework = fake(name)
    framework.start()

    with pytest.raises(UsageError) as caught:
        configure(on_demand=True)

    message = str(caught.value)
    assert re.search(r"too late: \w+ has started its devices \(GPU:0\) in this process", message)
    assert "Move memfit.configure to the top of the script" in message
    assert "restart the process (in a notebook: the kernel)" in message
    assert framework.read() == {}


def test_after_first_use_the_first_line_that_called_the_framework_is_named(fake, monkeypatch):
    framework = fake("jax")
    framework.start()
    script = framework.folder / "train.py"
    script.write_text("import jax\ndevices = jax.local_devices()\nconfigure(on_demand=True)\n")
    monkeypatch.chdir(framework.folder)

    with pytest.raises(UsageError, match=re.escape("train.py:2: devices = jax.local_devices()")):
        exec(compile(script.read_text(), str(script), "exec"), {"configure": configure})


@pytest.mark.parametrize("name", FAKES)
def test_after_first_use_an_undo_says_that_it_cannot(fake, name):
    framework = fake(name)
    change = configure(on_demand=True)
    framework.start()

    with pytest.raises(UsageError, match=r"cannot be undone: .*Restart the process"):
        change.undo()


@pytest.mark.parametrize("name", FAKES)
def test_a_limit_beyond_the_device_is_noted_and_limits_nothing(fake, name):
    framework = fake(name)

    alone = configure(limit="60GB")

    assert str(alone) == "60.0 GB is more than a device has (40.0 GB), so nothing is limited"
    assert framework.read() == {}


@pytest.mark.parametrize("name", FAKES)
def test_without_an_accelerator_one_line_says_so(fake, name, capsys):
    framework = fake(name)
    framework.stay_away()

    change = configure(limit="6GB")

    assert "no accelerator that" in str(change)
    assert capsys.readouterr().err == f"memfit: {change}\n"
    assert framework.read() == {}
    change.undo()


def test_tensorflow_refuses_a_limit_with_growth(fake):
    framework = fake("tensorflow")

    with pytest.raises(UsageError, match="cannot limit a device and take its memory on demand"):
        configure(on_demand=True, limit="6GB")
    configure(limit="6GB")
    with pytest.raises(UsageError, match="A limit is already set"):
        configure(on_demand=True)

    assert framework.read() == {"limit of GPU:0": 6 * GB // 2**20}


def test_tensorflow_goes_back_to_an_earlier_limit_but_not_to_none(fake):
    framework = fake("tensorflow")
    first = configure(limit="6GiB")

    configure(limit="3GiB").undo()

    assert framework.read() == {"limit of GPU:0": 6 * 1024}
    with pytest.raises(UsageError, match="no call that takes a limit away"):
        first.undo()


@pytest.mark.parametrize(
    ("name", "asked", "instead"),
    [("tensorflow", {"preallocate": 0.5}, 'limit="6GB"'), ("jax", {"limit": "6GB"}, "0.5")],
)
def test_a_size_that_cannot_be_read_is_said(fake, name, asked, instead):
    framework = fake(name)
    framework.set_driver([])

    with pytest.raises(UsageError, match=rf"memory of the device is not known.*{instead}"):
        configure(**asked)

    assert framework.read() == {}


def test_devices_of_two_sizes_keep_to_the_limit_each(fake):
    framework = fake("jax")
    framework.set_driver([40 * GB, 8 * GB])

    change = configure(limit="10GB")

    assert framework.read() == {FRACTION: "0.2500"}
    assert str(change).endswith("; 10.0 GB is more than a device has (8.00 GB)")


def test_jax_keeps_the_newer_name_that_a_user_uses(fake, monkeypatch):
    framework = fake("jax")
    monkeypatch.setenv("XLA_CLIENT_MEM_FRACTION", "0.9")

    change = configure(preallocate=0.5)

    assert framework.read()["XLA_CLIENT_MEM_FRACTION"] == "0.5000"
    assert FRACTION not in framework.read()
    change.undo()
    assert framework.read() == {"XLA_CLIENT_MEM_FRACTION": "0.9"}


def test_jax_without_an_allocator_that_keeps_limits_is_refused(fake, monkeypatch):
    fake("jax")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "platform")

    with pytest.raises(UsageError, match="XLA_PYTHON_CLIENT_ALLOCATOR=platform, which is set"):
        configure(limit="6GB")


@pytest.mark.parametrize(
    ("variable", "value"), [("JAX_PLATFORMS", "cpu"), ("CUDA_VISIBLE_DEVICES", "")]
)
def test_jax_that_is_told_to_use_the_cpu_has_no_accelerator(fake, monkeypatch, variable, value):
    fake("jax")
    monkeypatch.setenv(variable, value)

    assert "no accelerator" in str(configure(on_demand=True))


def test_torch_keeps_what_a_user_set_for_its_allocator(fake, monkeypatch):
    framework = fake("torch")
    before = {"PYTORCH_ALLOC_CONF": "max_split_size_mb:128,expandable_segments:False"}
    monkeypatch.setenv(*next(iter(before.items())))

    change = configure(on_demand=True)

    after = "max_split_size_mb:128,expandable_segments:True"
    assert framework.read() == {"PYTORCH_ALLOC_CONF": after}
    change.undo()
    assert framework.read() == before


def test_torch_takes_a_limit_at_any_time_and_gives_it_back(fake):
    framework = fake("torch")
    framework.start()

    change = configure(limit="6GB")

    assert framework.read() == {"fraction of GPU:0": 0.15}
    change.undo()
    assert framework.read() == {"fraction of GPU:0": 1.0}


def test_torch_has_its_variable_before_a_limit_starts_cuda(fake):
    framework = fake("torch")

    configure(on_demand=True, limit="6GB")

    assert framework.read_at_start == SEGMENTS


def test_torch_knows_its_sizes_without_the_driver(fake):
    framework = fake("torch")
    framework.set_driver([])

    change = configure(limit="60GB")

    assert str(change).endswith(
        "60.0 GB is more than a device has (40.0 GB), so nothing is limited"
    )
    assert framework.read() == {"fraction of GPU:0": 1.0}


def test_growth_is_set_beside_a_limit_that_limits_nothing(fake):
    framework = fake("jax")

    change = configure(on_demand=True, limit="60GB")

    assert str(change).endswith(
        "; 60.0 GB is more than a device has (40.0 GB), so nothing is limited"
    )
    assert framework.read() == {PREALLOCATE: "false"}


def test_keras_or_its_settings_choose_the_backend(monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    monkeypatch.delenv("KERAS_BACKEND", raising=False)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))

    assert chosen_backend_name() == "tensorflow"
    (tmp_path / "keras.json").write_text('{"backend": "jax"}')
    assert chosen_backend_name() == "jax"
    monkeypatch.setenv("KERAS_BACKEND", "openvino")
    with pytest.raises(UsageError, match="Received: Keras with the backend 'openvino'"):
        configure(on_demand=True)
    keras = SimpleNamespace(config=SimpleNamespace(backend=lambda: "torch"))
    monkeypatch.setitem(sys.modules, "keras", keras)
    assert chosen_backend_name() == "torch"


@pytest.mark.parametrize("backend", BACKENDS)
def test_on_this_machine_nothing_is_started_and_a_line_is_printed(backend, memfit):
    if list(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("this machine has an accelerator")
    done = subprocess.run(
        [sys.executable, str(memfit.script(WITHOUT_ACCELERATOR))],
        env={**os.environ, "KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "good\n"
    assert done.stderr.count("memfit: no accelerator that") == 5


def test_every_variable_that_the_document_names_is_one_that_is_set():
    named = set(re.findall(r"`([A-Z]+_[A-Z_]+)[=`]", DOCUMENT.read_text()))

    assert named - {"KERAS_BACKEND"} <= {*SEGMENTS, PREALLOCATE, FRACTION}


@pytest.mark.parametrize("name", FAKES)
def test_every_line_that_the_document_shows_sets_something(fake, name):
    lines = re.findall(r"^memfit\.(configure\(.*?\))", DOCUMENT.read_text(), re.MULTILINE)

    assert len(lines) == 3
    for line in lines:
        framework = fake(name)
        exec(line, {"configure": configure})
        assert framework.read() != {}
