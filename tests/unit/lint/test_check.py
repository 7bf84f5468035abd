"""From text to hints: places, `# noqa`, and text that is no Python."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memfit.lint import lint_source

LEAK = """import torch
total = 0
losses = []
for x, y in loader:
    loss = criterion(net(x), y)
    loss.backward()
    losses.append(loss){append}
    total += loss{add}
"""


def codes(text):
    return [hint.code for hint in lint_source(text, "train.py")]


def leak(append="", add=""):
    return LEAK.format(append=append, add=add)


def test_a_hint_has_place_message_and_fix_with_the_names_of_the_script():
    first, second = lint_source(leak(), "train.py")

    assert (first.file, first.line, first.column, first.code) == ("train.py", 7, 5, "MF201")
    assert first.message == (
        "losses.append(loss) keeps the graph and the tensor of every step: losses grows at every "
        "pass of the loop of line 4"
    )
    assert first.fix == "losses.append(loss) -> losses.append(float(loss))"
    assert second.fix == "total += loss -> total += loss.item()"


def fix_of_kept(value, assigned):
    [hint] = lint_source(f"""
import keras
import tensorflow as tf

loss_fn = keras.losses.MeanSquaredError()
by_row = keras.losses.MeanSquaredError(reduction=None)
kept = []
for x, y in dataset:
    with tf.GradientTape() as tape:
        pred = model(x, training=True)
        {assigned}
        cost = loss_fn(y, pred)
    optimizer.apply(tape.gradient(cost, weights), weights)
    kept.append({value})
""")
    return hint.fix


@pytest.mark.parametrize(
    ("value", "assigned"),
    [
        ("loss", "loss = keras.ops.stop_gradient(pred)"),
        ("accuracy", "accuracy = tf.cast(y == pred, float)"),
        ("level", "level = tf.reduce_mean(pred)"),
        ("level", "level = loss_fn(y, pred)"),
        ("level", "level = tf.square(pred).mean()"),
    ],
)
def test_the_number_is_kept_of_what_is_known_to_be_one(value, assigned):
    assert fix_of_kept(value, assigned) == f"kept.append({value}) -> kept.append(float({value}))"


@pytest.mark.parametrize(
    ("value", "assigned"),
    [
        ("pred", "pass"),
        ("level", "level = tf.square(pred)"),
        ("level", "level = tf.reduce_mean(pred, axis=0)"),
        ("loss", "loss = by_row(y, pred)"),
        ("loss", "loss = keras.losses.mean_squared_error(y, pred)"),
    ],
)
def test_of_a_whole_tensor_no_number_is_promised(value, assigned):
    assert fix_of_kept(value, assigned) == (
        "keep a summary (a mean, a count) or the last few with collections.deque(maxlen=...), or "
        f"write it to disk; .numpy() is as large: {value}"
    )


def test_a_cache_moved_before_a_repeat_is_not_to_freeze_what_is_random():
    [hint] = lint_source("ds = tf.data.Dataset.range(9).map(flip).repeat().cache()")

    assert hint.fix == (
        "keep one round, then repeat it: .repeat().cache() -> .cache().repeat(). A cache keeps "
        "what stands before it, so random maps (and shuffle) belong after it: before it, every "
        "epoch gets the same."
    )


def test_noqa_silences_its_line_only():
    assert codes(leak(append="  # noqa")) == ["MF202"]


def test_noqa_with_a_code_silences_that_code_only():
    assert codes(leak(append="  # noqa: MF201", add="  # noqa: MF201")) == ["MF202"]


@pytest.mark.parametrize(
    "comment", ["# NOQA", "#noqa:MF201", "# noqa: E501, MF201", "# noqa : mf201", "# why  # noqa"]
)
def test_noqa_is_read_as_other_linters_read_it(comment):
    assert codes(leak(append=f"  {comment}")) == ["MF202"]


@pytest.mark.parametrize("comment", ["# noqa: E501", "# qa", "; text = '# noqa'"])
def test_what_is_not_a_noqa_of_ours_silences_nothing(comment):
    assert codes(leak(append=f"  {comment}")) == ["MF201", "MF202"]


def test_noqa_at_the_end_of_a_call_over_several_lines_silences_it():
    call = "losses.append(\n        loss\n    )  # noqa: MF201"

    assert codes(leak().replace("losses.append(loss)", call)) == ["MF202"]


def test_noqa_inside_a_loop_does_not_silence_the_loop():
    text = """import tensorflow as tf
with tf.GradientTape(persistent=True) as tape:
    for x in data:
        loss = net(x)  # noqa
        g = tape.gradient(loss, weights)
"""

    assert codes(text) == ["MF401"]


def test_a_chain_is_named_at_its_stage_not_where_it_begins():
    text = "import tensorflow as tf\nds = (\n    tf.data.Dataset.range(9)\n    .batch(2)\n    "
    [hint] = lint_source(f"{text}.shuffle(99)\n)\n")

    assert (hint.line, hint.column) == (5, 6)


def test_columns_count_characters_not_bytes():
    [hint] = lint_source("import gc, keras\nname = 'größer'; gc.disable()\n")

    assert (hint.line, hint.column) == (2, 18)


def test_a_syntax_error_is_a_hint_with_its_line():
    [hint] = lint_source("x = 1\nfor x in y\n    pass\n", "broken.py")

    assert (hint.code, hint.file, hint.line) == ("MF001", "broken.py", 2)
    assert hint.message == "this file cannot be read as Python: expected ':'"
    assert hint.fix == "see Python's own message: python -m py_compile broken.py"


@pytest.mark.parametrize(
    "text",
    ["x = 1\0", "(" * 500 + ")" * 500, "-" * 100_000 + "1", "if x:"],
    ids=["null byte", "brackets", "nesting", "cut off"],
)
def test_text_that_python_refuses_is_one_hint(text):
    assert codes(text) == ["MF001"]


def test_what_python_warns_of_is_no_matter_of_ours():
    assert codes("import re\npattern = '\\d+'\nassert (pattern, 'x')\n") == []


def test_a_script_of_two_thousand_assignments_is_read():
    body = "\n".join("x = x + step(x)" for _ in range(2000))

    assert codes(f"import tensorflow as tf\nx = tf.zeros(1)\n{body}\n") == []


@pytest.mark.parametrize(
    "text",
    [
        "a = b\nb = a\na(b)",
        "for i in x:\n    a, b = b, a\n    c.append(a)",
        "def f():\n    return f()\nfor i in x:\n    y = f()\n    z.append(y)",
        "def f():\n    return g()[0], 1\ndef g():\n    a, b = f()\n    return a, b\nlist(g())",
        "class A(A):\n    def on_epoch_end(self):\n        self.a = b = self.a\n        b += [b]",
        "ds = ds.batch(2)\nfor i in x:\n    ds = ds.shuffle(100)",
        "while n:\n    n += n\n    total += n\n    kept.append(n)",
        "match x:\n    case [a, *b] if (c := a):\n        b.append(c)",
        "import keras\nfor k in range(9):\n    n = k = n\n    n.fit(k)",
    ],
)
def test_names_that_lead_back_to_themselves_end(text):
    assert codes(text) == []


@given(st.text())
def test_any_text_has_an_answer(text):
    lint_source(text)


def test_hints_come_in_the_order_of_lines():
    text = "import gc, keras\ngc.freeze()\ngc.disable()\n"

    assert [hint.line for hint in lint_source(text)] == [2, 3]
