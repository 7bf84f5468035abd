"""What names stand for: imports under aliases, and the last value of a variable."""

import ast

import pytest

from memfit.lint.script.names import Names
from memfit.lint.script.tree import Tree


def full_name(imports, expression):
    tree = Tree(ast.parse(f"{imports}\n{expression}"))
    return Names(tree).full_name(tree.module.body[-1].value)


@pytest.mark.parametrize(
    ("imports", "expression", "name"),
    [
        ("import tensorflow as tf", "tf.keras.Sequential", "keras.Sequential"),
        ("from tensorflow import keras", "keras.models.Sequential", "keras.Sequential"),
        ("import tensorflow.keras as k", "k.Model", "keras.Model"),
        ("import keras", "keras.models.Model", "keras.Model"),
        ("from tensorflow.keras.models import Model as M", "M", "keras.Model"),
        ("from keras import backend as K", "K.clear_session", "keras.utils.clear_session"),
        ("import keras.backend as K", "K.clear_session", "keras.utils.clear_session"),
        ("import tensorflow.compat.v1 as tf", "tf.data.Dataset", "tensorflow.data.Dataset"),
        ("import tensorflow.keras", "tensorflow.keras.Model", "keras.Model"),
        ("import tensorflow as tf\nkeras = tf.keras", "keras.Model", "keras.Model"),
        ("try:\n    import keras\nexcept ImportError:\n    pass", "keras.Model", "keras.Model"),
        ("", "tf.function", "tensorflow.function"),
        ("", "range", "range"),
        ("keras = load()", "keras.Model", None),
        ("def tf(): ...", "tf.function", None),
        ("", "unheard.of", None),
    ],
)
def test_an_import_is_known_under_any_alias(imports, expression, name):
    assert full_name(imports, expression) == name


def last_value(text):
    """What `x` stands for in the last expression of `text`."""
    tree = Tree(ast.parse(text))
    name = [node for node in ast.walk(tree.module) if isinstance(node, ast.Name)]
    asked = max((one for one in name if one.id == "x"), key=tree.begin)
    binding = Names(tree).lookup("x", asked)
    return binding and binding.value and ast.unparse(binding.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x = 1\nx = 2\nprint(x)", "2"),
        ("x = 1\nx = f(x)", "1"),
        ("x = 1\nif a:\n    x = 2\nprint(x)", "2"),
        ("x = 1\nif a:\n    x = 2\nelse:\n    print(x)", "1"),
        ("x = 1\ndef f():\n    return x\nx = 3\ndef g():\n    return x", "3"),
        ("def f(x):\n    return x", None),
        ("while a:\n    print(y)\n    y = x\n    x = 7\n    print(x)", "7"),
        ("for x in data:\n    print(x)", "data"),
        ("with opened() as x:\n    print(x)", "opened()"),
        ("x = 5\ndef f():\n    global x\n    x = 6\ndef g():\n    return x", "6"),
    ],
)
def test_a_variable_is_what_was_last_assigned_to_it(text, value):
    assert last_value(text) == value


def test_attributes_of_self_are_known_in_all_methods():
    text = """
class A:
    def __init__(self):
        self.rate = 0.1
    def step(self):
        return self.rate
"""
    tree = Tree(ast.parse(text))
    [asked] = [one for one in ast.walk(tree.module) if isinstance(one, ast.Return)]

    binding = Names(tree).lookup("self.rate", asked.value)

    assert binding is not None
    assert ast.unparse(binding.value) == "0.1"
