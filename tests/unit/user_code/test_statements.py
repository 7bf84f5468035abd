"""Which line of a script called a framework first."""

import sys

import pytest

from memfit.user_code.statements import find_first_call

HERE = "frames.append(sys._getframe())"


def first_call(tmp_path, text):
    path = tmp_path / "train.py"
    path.write_text(text)
    frames = []
    exec(compile(text, str(path), "exec"), {"sys": sys, "frames": frames, "keras": None})
    found = find_first_call(frames[0], {"keras", "jax"})
    return (found.line, found.text) if found else None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"import json as keras\nkeras.dumps(1)\n{HERE}", None),
        (f"from jax import Array\n{HERE}\n", None),
        (f"import jax\n{HERE}\njax.devices()\n", None),
        (f"import jax\njax.config.update('jax_enable_x64', False)\n{HERE}", None),
        (f"import jax\nmade = [\n    jax.jit(len),\n]\n{HERE}", (2, "made = [jax.jit(len)]")),
        (f"from jax import jit as j\nif True:\n    j(len)\n{HERE}", (3, "j(len)")),
        (f"import jax\ndef main():\n    jax.jit(len)\n{HERE}", None),
        (f"import jax\njax.jit(len)\ndef main():\n    {HERE}\nmain()", None),
    ],
)
def test_the_first_call_above_is_found_where_lines_run_in_order(tmp_path, text, found):
    assert first_call(tmp_path, text) == found


def test_what_was_typed_into_a_prompt_has_no_lines_to_look_at():
    frames = []
    exec(compile(HERE, "<stdin>", "exec"), {"sys": sys, "frames": frames})

    assert find_first_call(frames[0], {"keras"}) is None
    assert find_first_call(None, {"keras"}) is None
