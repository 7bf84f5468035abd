"""What each adapter tells of a script: what it makes, compiles, steps and hands over."""

import json

import pytest

TOLD = """
import json
class Told:
    def __init__(self): self.steps, self.things, self.compilations, self.data = 0, [], [], []
    def stepped(self): self.steps += 1
    def made(self, kind, thing): self.things.append(kind)
    def compiled(self, one): self.compilations.append([one.compiler, one.name, dict(one.arguments)])
    def loaded(self, by, size_bytes, copied_bytes): self.data.append([by, size_bytes, copied_bytes])
    def show(self, **more): print(json.dumps({**vars(self), **more}))
told = Told()
"""
TENSORFLOW = """
import tensorflow as tf
from memfit.backends.events import tensorflow as events
from memfit.backends.registries import tensorflow as registries
events.watch(told)

@tf.function
def step(x, rate):
    return x * rate

step(tf.ones(3), 0.5)
step(tf.ones(3), 0.5)
step(tf.ones(3), 0.25)
fast = tf.function(lambda x: x + 1, jit_compile=True, reduce_retracing=True)
for size in (2, 3, 4, 5):
    fast(tf.ones(size))
data = tf.data.Dataset.from_tensor_slices(tf.zeros((50_000, 100)))
data = data.batch(100).shuffle(200).repeat().cache().prefetch(8)
iterator = iter(data)
for _ in range(5):
    next(iterator)
stages = {one.kind: one for one in events.read_stages()}
assert stages["shuffle"].of_batches and stages["shuffle"].length == 200
assert stages["shuffle"].full_bytes == 200 * 100 * 100 * 4, stages["shuffle"]
assert stages["cache"].after_repeat and stages["cache"].held_bytes > 0
assert stages["prefetch"].length == 8
tf.random.normal((2, 2))
tf.random.set_seed(1)
tf.random.normal((2, 2))
with tf.GradientTape():
    pass
told.show(numbers=dict(registries.count().numbers))
"""
JAX = """
import functools, jax, jax.numpy as jnp
from memfit.backends.events import jax as events
from memfit.backends.registries import jax as registries
events.watch(told)

@functools.partial(jax.jit, static_argnames="rate")
def step(x, rate):
    return x * rate

x = jnp.ones(3)
for rate in (0.5, 0.5, 0.25):
    step(x, rate=rate)
told.show(numbers=dict(registries.count().numbers))
"""
TORCH = """
import torch
from memfit.backends.events import torch as events
from memfit.backends.objects import torch as objects
events.watch(told)
weight = torch.zeros(100, requires_grad=True)
sgd = torch.optim.SGD([weight], lr=0.1)
weight.sum().backward()
sgd.step()
torch.utils.data.DataLoader([1, 2, 3])

@torch.compile(backend="eager", dynamic=False)
def step(x):
    return x * 2

for size in (2, 3, 4):
    step(torch.ones(size))
total = torch.zeros(())
lengths = []
for _ in range(4):
    total = total + (weight * torch.ones(1000, 100)).square().sum()
    lengths.append(objects.graph_length(total))
assert lengths == sorted(set(lengths)), lengths
kept = objects.graph_size_bytes([total])
assert 4 * 400_000 <= kept <= 9 * 400_000, kept
told.show()
"""


@pytest.fixture
def told(memfit):
    """Runs a script in a plain Python, with an adapter that tells; returns what it told."""
    import subprocess
    import sys

    def run(source):
        done = subprocess.run(
            [sys.executable, memfit.script(TOLD + source)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_tensorflow_tells_of_traces_shapes_pipelines_tapes_and_seeds(told):
    result = told(TENSORFLOW)

    traces = [args for compiler, name, args in result["compilations"] if name == "step"]
    assert [args["rate"] for args in traces] == ["0.5 (Python float)", "0.25 (Python float)"]
    assert [one[0] for one in result["compilations"]].count("XLA") >= 1
    assert result["things"].count("iterator") == 1
    assert result["things"].count("seeded operation") == 1
    assert {"function", "dataset", "tape"} <= set(result["things"])
    assert result["data"] == [["from_tensor_slices", 20_000_000, 20_000_000]]
    assert result["numbers"]["gradient_registry"] > 100


def test_jax_tells_of_each_compilation_with_its_static_argument(told):
    result = told(JAX)

    compiled = [args for compiler, name, args in result["compilations"] if name == "step"]
    assert [args["rate"] for args in compiled] == ["0.5 (Python float)", "0.25 (Python float)"]
    assert result["steps"] == 3
    assert result["numbers"]["tensors"] >= 1


def test_torch_tells_of_steps_compilations_and_records_of_gradients(told):
    result = told(TORCH)

    assert result["things"] == ["optimizer", "loader"]
    assert result["steps"] == 1
    compiled = [args for compiler, name, args in result["compilations"]]
    assert len(compiled) == 3
    assert "size mismatch" in compiled[-1]["guard"]
