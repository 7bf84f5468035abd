"""Weights by class are those of Keras, wherever rows come from."""

import numpy as np
import pytest
from streaming.cases import Grouped

from memfit.errors import UsageError
from memfit.streaming.data.layout import Layout
from memfit.streaming.data.reading import ReadOptions
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.open_data import open_data
from memfit.streaming.views.class_weights import weigh_classes

NUM_ROWS = 300
LABELS = np.arange(NUM_ROWS) % 4
WEIGHTS = {0: 0.5, 1: 2, 3: 0.0}
EXPECTED = np.array([0.5, 2, 1, 0], "float32")


def batches_of(source, layout, class_weight=WEIGHTS):
    weighed = weigh_classes(source, layout, class_weight)
    return list(Loader(*weighed, LoaderSettings(32, 8_000_000, seed=1)).run())


@pytest.mark.parametrize(
    "labels", [LABELS, LABELS.astype("float32"), LABELS[:, None], np.eye(4, dtype="uint8")[LABELS]]
)
def test_rows_get_the_weight_of_their_class(tmp_path, labels):
    np.save(tmp_path / "x.npy", LABELS)
    np.save(tmp_path / "y.npy", labels)

    batches = batches_of(*open_data((tmp_path / "x.npy", tmp_path / "y.npy")))

    assert sum(len(y) for _, y, _ in batches) == NUM_ROWS
    for x, _, weight in batches:
        assert weight.dtype == np.dtype("float32")
        assert np.array_equal(weight, EXPECTED[x])


def test_weights_that_are_there_are_multiplied():
    own = np.arange(NUM_ROWS, dtype="float64")[:, None]

    for x, y, weight in batches_of(*open_data((np.arange(NUM_ROWS), LABELS, own))):
        assert weight.dtype == np.dtype("float32")
        assert np.array_equal(weight, EXPECTED[y] * x)


def test_labels_may_be_text():
    names = np.array(["ant", "bee", "cat", "dog"])

    for x, _, weight in batches_of(*open_data((LABELS, names[LABELS])), {"dog": 3, "ant": 0}):
        assert np.array_equal(weight, np.array([0, 1, 1, 3])[x])


def test_a_feature_may_be_called_weight(tmp_path):
    np.savez(tmp_path / "data.npz", weight=LABELS + 100, kind=LABELS)

    for inputs, y, weight in batches_of(
        *open_data(tmp_path / "data.npz", ReadOptions(label="kind"))
    ):
        assert np.array_equal(inputs, y + 100)
        assert np.array_equal(weight, EXPECTED[y])


def test_groups_are_read_whole():
    for _, y, weight in batches_of(Grouped(), Layout(("x", "y")), {7: 2.0}):
        assert np.array_equal(weight, 1.0 + (y == 7))


def test_a_state_does_not_depend_on_weights():
    source, layout = open_data((LABELS, LABELS))

    assert weigh_classes(source, layout, WEIGHTS)[0].fingerprint() == source.fingerprint()


@pytest.mark.parametrize(
    ("source", "class_weight", "told"),
    [
        ((LABELS, LABELS), {}, "class_weight must be a dict of weights by label. Received: {}."),
        ((LABELS, LABELS), [1, 2], "class_weight must be a dict"),
        ((LABELS, LABELS), {0: -1}, "class_weight must be weights of 0 or more."),
        (LABELS, WEIGHTS, "class_weight needs one column of labels. Received: no labels."),
        ((LABELS, (LABELS, LABELS)), WEIGHTS, "class_weight needs one column of labels."),
    ],
)
def test_what_cannot_be_weighed_is_refused(source, class_weight, told):
    with pytest.raises(UsageError) as caught:
        weigh_classes(*open_data(source), class_weight)

    assert str(caught.value).startswith(told)
