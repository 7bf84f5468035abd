"""What scripts show of wrapped functions under memfit is as it is without it.

Run by tests/backends/test_each_backend.py.
"""

import runpy

import keras
import pytest

from conftest import SCRIPTS

BACKEND = keras.backend.backend()


@pytest.mark.skipif(BACKEND != "tensorflow", reason="a script of TensorFlow")
def test_a_tf_function_without_memfit_does_the_same(capsys):
    runpy.run_path(str(SCRIPTS / "tf_function.py"), run_name="__main__")

    assert capsys.readouterr().out == "error NameError\n"


@pytest.mark.skipif(BACKEND != "jax", reason="a script of JAX")
def test_a_jitted_function_without_memfit_does_the_same(capsys):
    runpy.run_path(str(SCRIPTS / "jax_jit.py"), run_name="__main__")

    assert "CountedFunction" not in capsys.readouterr().out
