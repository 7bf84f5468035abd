"""The stream that lint writes for the files of a script."""

import pytest

from memfit.diagnose.lint import lint_source

HEAD = """
import keras, numpy as np, tensorflow as tf
TRAIN = "x.npy"
x, y = np.load("x.npy"), np.load("y.npy")
features = np.load(TRAIN)
scaled = np.load("x.npy") / 255.0
targets = np.load("y.npy")
labels = count()
archive = np.load("d.npz")
model = keras.Sequential([keras.layers.Dense(1)])
"""
IN_BETWEEN = "; what is done to the rows in between goes into map="


def fix_of(line):
    (hint,) = [one for one in lint_source(HEAD + line) if one.code in ("MF103", "MF104")]
    return hint.fix


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "model.fit(features, targets, batch_size=256, epochs=3)",
            "data = memfit.stream((TRAIN, 'y.npy'), batch_size=256, shuffle=True), then "
            "model.fit(data, ...)",
        ),
        (
            "model.fit(scaled, labels)",
            "data = memfit.stream(('x.npy', labels), batch_size=32, shuffle=True), then "
            f"model.fit(data, ...){IN_BETWEEN}",
        ),
        (
            "tf.data.Dataset.from_tensor_slices(features)",
            "data = memfit.stream(TRAIN, batch_size=32, shuffle=True) in place of the dataset",
        ),
        (
            "tf.data.Dataset.from_tensor_slices((features, features[:, :1]))",
            "data = memfit.stream(TRAIN, batch_size=32, shuffle=True) in place of the dataset"
            f"{IN_BETWEEN}",
        ),
    ],
)
def test_it_names_the_files_that_the_script_loads(line, expected):
    assert fix_of(line) == expected


@pytest.mark.parametrize(
    "line",
    [
        "model.fit(archive['x'], archive['y'])",
        "tf.data.Dataset.from_tensor_slices({'a': features})",
        "model.fit(features, features)",
    ],
)
def test_where_it_cannot_be_sure_it_names_none(line):
    assert "memfit.stream" not in fix_of(line)
