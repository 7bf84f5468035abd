"""What the rules are built from: chains, repetition, kinds, kept values."""

import ast

import pytest

from memfit.lint.script.constants import number
from memfit.lint.script.script import read_script, shown


def only(script, kind):
    [node] = script.tree.within(script.tree.module, kind)
    return node


def call_of(script, name):
    return next(call for call in script.tree.calls if ast.unparse(call.func) == name)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n = 4 * 64\nf(n)", 256),
        ("n = 10**6\nf(n)", 1_000_000),
        ("n = -1\nf(n)", -1),
        ("a = 2\nn = a << 3\nf(n)", 16),
        ("n = 1 / 0\nf(n)", None),
        ("n = (-1) ** 0.5\nf(n)", None),
        ("n = 9 ** 9 ** 9 ** 9\nf(n)", 9**64),
        ("f(n)", None),
        ("n = m\nm = n\nf(n)", None),
    ],
)
def test_a_number_is_known_through_names_and_arithmetic(text, value):
    script = read_script(text)

    assert number(script.names, call_of(script, "f").args[0]) == value


def test_a_pipeline_is_read_through_variables_and_functions():
    script = read_script("""
import tensorflow as tf
def rows():
    return tf.data.Dataset.range(10).map(double)
ds = rows()
ds = ds.batch(2)
final = ds.prefetch(1)
""")

    pipeline = script.chains.before(only(script, ast.Return).value)
    [(stage, before)] = script.chains.ending_in("prefetch")

    assert [one.name for one in pipeline.stages] == ["map"]
    assert [one.name for one in before.stages] == ["map", "batch"]
    assert (stage.text, stage.line) == (".prefetch(1)", 7)


def test_stages_under_two_conditions_may_never_meet():
    script = read_script("""
import tensorflow as tf
def make(ds, cache):
    if not cache:
        ds = ds.repeat()
    ds = ds.map(parse)
    if cache:
        ds = ds.cache()
    return ds
""")

    [(_, before)] = script.chains.ending_in("cache")

    assert [stage.name for stage in before.stages] == ["map"]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("for i in range(9):\n    f()", "the loop of line 1"),
        ("while f():\n    pass", "the loop of line 1"),
        ("def g():\n    f()\nfor i in x:\n    g()", "the loop of line 3"),
        ("def g():\n    f()\ndef h():\n    g()\nfor i in x:\n    h()", "the loop of line 5"),
        ("[f() for i in x]", "the list of line 1"),
        ("class C(Callback):\n    def on_epoch_end(self):\n        f()", "on_epoch_end"),
        ("import keras\nkeras.callbacks.LambdaCallback(on_epoch_end=lambda e, l: f())", "the hook"),
        ("def g(trial):\n    f()\nstudy.optimize(g, n_trials=9)", "g"),
        ("f()", None),
        ("for i in f():\n    pass", None),
        ("for i in range(2):\n    f()", None),
        ("for i in (1, 2, 3):\n    f()", None),
        ("for x in ds.take(1):\n    f()", None),
        ("for i, x in enumerate(ds.take(2)):\n    f()", None),
        ("for x in ds:\n    f()\n    break", None),
        ("for x in ds:\n    pass\nelse:\n    f()", None),
        ("class C(Callback):\n    def on_train_begin(self):\n        f()", None),
        ("class C:\n    def on_epoch_end(self):\n        f()", None),
        ("def g():\n    f()\ng()", None),
        ("def g():\n    f()\n    g()", None),
        ("for i in x:\n    def g():\n        f()", None),
    ],
)
def test_what_runs_again_and_again_is_known_with_its_reason(text, label):
    script = read_script(f"from keras.callbacks import Callback\n{text}" if "C(" in text else text)

    repeat = script.repeats.of(call_of(script, "f"))

    assert (repeat and repeat.label) == label


@pytest.mark.parametrize(
    ("guard", "is_once"),
    [
        ("if step is None", True),
        ("if not made", True),
        ("if name not in cache", True),
        ("if epoch == 0", True),
        ("if first_pass", True),
        ("if step % 10 == 0", False),
        ("if not step % 10", False),
        ("if loss > 3", False),
    ],
)
def test_a_guard_that_lets_pass_once_is_distinguished_from_one_that_lets_pass_often(guard, is_once):
    script = read_script(f"for i in range(99):\n    {guard}:\n        f()\n")
    call = call_of(script, "f")

    assert script.repeats.is_guarded(call, script.repeats.of(call)) is is_once


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("import keras\nx = keras.Sequential()", "model"),
        ("import tensorflow as tf\nx = tf.keras.applications.ResNet50()", "model"),
        ("import keras\nclass N(keras.Model): ...\nx = N()", "model"),
        ("import torch\nclass N(torch.nn.Module): ...\nx = N().to(device)", "module"),
        (
            "import keras\ndef make():\n    m = keras.Sequential()\n    return m\nx = make()",
            "model",
        ),
        ("import keras\nm = keras.Sequential()\nx = m(data)", "prediction"),
        ("x = net(data, training=True)", "prediction"),
        ("import keras\nm = keras.Sequential()\nx = m.predict(data)", "outputs"),
        ("import keras\nm = keras.Sequential()\nx = m.fit(data)", "history"),
        ("x = estimator.fit(data)", None),
        ("x = estimator.fit(data, epochs=3)", "history"),
        ("from sklearn.svm import SVC\nmodel = SVC()\nx = model.fit(data)", None),
        ("import keras\nf = keras.losses.MeanSquaredError()\nx = f(y, z)", "tensor"),
        ("import tensorflow as tf\nx = tf.reduce_mean(y)", "tensor"),
        ("import tensorflow as tf\nx = tf.reduce_mean(y).numpy()", None),
        ("import tensorflow as tf\nx = float(tf.reduce_mean(y))", None),
        ("import torch\nloss = f(y)\nloss.backward()\nx = loss * 2", "graph"),
        ("import torch\nloss = f(y)\nloss.backward()\nloss = loss.item()\nx = loss", None),
        ("import jax\nx = jax.grad(f)(params)", "tensor"),
        ("import tensorflow as tf\n@tf.function\ndef f(): ...\nx, y = f()", "tensor"),
        ("import copy\nx = copy.deepcopy(net.state_dict())", "weights"),
        ("x = net.state_dict()", None),
        ("from data import make\nx = make(files, training=True)", None),
        ("import optax\nx = optax.adam(0.1)", None),
    ],
)
def test_the_kind_of_a_value_is_known_from_what_made_it(text, kind):
    script = read_script(f"{text}\nuse(x)")

    assert script.kinds.of(call_of(script, "use").args[0]) == kind


@pytest.mark.parametrize(
    ("text", "lives"),
    [
        ("a = []\nfor x in d:\n    a.append(x)", True),
        ("a = {}\nfor i in range(9):\n    a[i] = 1", True),
        ("a = []\nfor x in d:\n    a += [x]", True),
        ("a = []\ndef f():\n    a.append(1)\nfor x in d:\n    f()", True),
        (
            "def f():\n    a = []\n    for e in range(9):\n        for x in d: a.append(x)",
            True,
        ),
        ("for e in range(9):\n    a = []\n    for x in d:\n        a.append(x)", False),
        ("def f():\n    a = []\n    for x in d:\n        a.append(x)\n    return a", False),
        ("a = []\nfor x in d:\n    a.append(x)\n    if len(a) > 9:\n        a.pop(0)", False),
        ("a = []\nfor x in d:\n    a.append(x)\n    del a[0]", False),
        ("a = []\nfor x in d:\n    a.append(x)\n    a = a[-9:]", False),
        ("from collections import deque\na = deque(maxlen=9)\nfor x in d:\n    a.append(x)", False),
        ("a = []\ndef f():\n    global a\n    a = []\nfor x in d:\n    a.append(x)", False),
    ],
)
def test_a_container_that_is_emptied_or_made_anew_does_not_live_on(text, lives):
    script = read_script(text)
    [keep] = script.keeps.all

    assert script.keeps.lives_on(keep) is lives


@pytest.mark.parametrize(
    "text",
    [
        "a = np.zeros(9)\nfor i in range(9):\n    a[i] = loss",
        "a = {}\nfor i in range(9):\n    a['last'] = loss",
        "a = []\nfor e in range(9):\n    for i in range(3):\n        a[i] = loss",
    ],
)
def test_what_is_written_over_is_not_kept(text):
    assert read_script(text).keeps.all == ()


def test_long_code_is_cut_when_shown():
    assert len(shown(ast.parse("f(" + ", ".join("abcdef") * 9 + ")"))) == 60
