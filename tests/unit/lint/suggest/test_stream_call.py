"""The stream that lint writes for the files of a script."""

import re

import h5py
import numpy as np
import pandas as pd
import pytest

import memfit
from memfit.lint import lint_source

HEAD = """
import h5py, keras, numpy as np, pandas as pd, tensorflow as tf
from sklearn.model_selection import train_test_split
TRAIN = "x.npy"
x, y = np.load("x.npy"), np.load("y.npy")
features = np.load(TRAIN)
scaled = np.load("x.npy") / 255.0
targets = np.load("y.npy")
labels = count()
table = pd.read_csv("t.csv")
model = keras.Sequential([keras.layers.Dense(1)])
"""
SLICES = "tf.data.Dataset.from_tensor_slices"


def fix_of(lines, head=HEAD):
    hints = [one for one in lint_source(head + lines) if one.code in ("MF103", "MF104")]
    (hint,) = hints
    return hint.fix


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (
            "model.fit(features, targets, batch_size=256, epochs=3)",
            "data = memfit.stream((TRAIN, 'y.npy'), batch_size=256, shuffle=True), then "
            "model.fit(data, ...)",
        ),
        (
            "model.fit(scaled, labels)",
            "data = memfit.stream(('x.npy', labels), batch_size=32, shuffle=True), then "
            "model.fit(data, ...); np.load('x.npy') / 255.0 (line 7) goes into map=",
        ),
        (
            "x = x.astype('float32')\nx = x / 255\nx[x > 1] = 1\n"
            "model.fit(x, y, 64, shuffle=False, class_weight={0: 1, 1: 9})",
            "data = memfit.stream(('x.npy', 'y.npy'), batch_size=64, class_weight={0: 1, 1: 9}), "
            "then model.fit(data, ...); x.astype('float32') (line 12), x / 255 (line 13), "
            "x[x > 1] = 1 (line 14) goes into map=",
        ),
        (
            "model.fit(x, y, validation_split=0.2)",
            "data = memfit.stream(('x.npy', 'y.npy'), batch_size=32, shuffle=True); train, "
            "validation = data.split(0.8), then model.fit(train, validation_data=validation, ...)",
        ),
        (
            "a, b, c, d = train_test_split(x, y, test_size=0.1)\nmodel.fit(a, c)",
            "data = memfit.stream(('x.npy', 'y.npy'), batch_size=32, shuffle=True); train, "
            "held_out = data.split(0.9), then model.fit(train, ...)",
        ),
        (
            f"{SLICES}(features)",
            "data = memfit.stream(TRAIN, batch_size=32, shuffle=True) in place of the dataset",
        ),
        (
            f"{SLICES}((features, features[:, :1]))",
            "data = memfit.stream(TRAIN, batch_size=32, shuffle=True) in place of the dataset"
            "; features[:, :1] (line 12) goes into map=",
        ),
        (
            f"ds = {SLICES}((x, y))\nds = ds.shuffle(1000).map(crop)\n"
            "ds = ds.batch(64, drop_remainder=True).prefetch(2)\nmodel.fit(ds)",
            "data = memfit.stream(('x.npy', 'y.npy'), batch_size=64, shuffle=True, "
            "drop_remainder=True) in place of the dataset; .map(crop) (line 13) goes into map=",
        ),
        (
            f"{SLICES}((x, y)).batch(64)",
            "data = memfit.stream(('x.npy', 'y.npy'), batch_size=64) in place of the dataset",
        ),
    ],
)
def test_it_names_the_files_that_the_script_loads(lines, expected):
    assert fix_of(lines) == expected


@pytest.mark.parametrize(
    "lines",
    [
        f"{SLICES}({{'a': features}})",
        "tf.data.Dataset.from_tensors((x, y))",
        "model.fit(features, features)",
        "model.fit(np.load('x.txt'), y)",
        # Some of the rows, or rows in other places.
        "model.fit(table.dropna().values, y)",
        "a, b, c, d = train_test_split(x, y, shuffle=False)\nmodel.fit(a, c)",
        "a, b = train_test_split(x)\nmodel.fit(a, y)",
        f"{SLICES}((x, y)).take(100).batch(64)",
        f"ds = {SLICES}((x, y))\na = ds.batch(8)\nb = ds.batch(9)",
        # Columns of two files, a column that is in both places, or one that the file has not.
        "model.fit(table.values, y)",
        "model.fit(table.values, table['label'])",
        "table['sum'] = table['a'] + table['b']\nmodel.fit(table[['sum']].values, table['label'])",
        "model.fit(table.drop(columns=['id', 'label']), table['label'])",
        "table.pop(name)\nmodel.fit(table.values, table.pop('label'))",
        "table.drop(columns='a', inplace=True)\nmodel.fit(table.values, y)",
        "d = np.load('d.npz')\nmodel.fit(d['x'], y)",
        "d = np.load('d.npz')\nmodel.fit(d['x'], d['x'])",
        "model.fit(pd.read_csv('t.csv', header=None).values, y)",
    ],
)
def test_where_it_cannot_be_sure_it_names_none(lines):
    assert "memfit.stream" not in fix_of(lines)


NUM_ROWS = 11


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files of the scripts below, in the folder where these run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    x = np.arange(3.0 * NUM_ROWS, dtype="float32").reshape(NUM_ROWS, 3)
    y = np.arange(NUM_ROWS) % 2
    np.save("x.npy", x)
    np.save("y.npy", y)
    np.savez("d.npz", x_train=x, y_train=y, x_test=x[:4], y_test=y[:4])
    with h5py.File("d.h5", "w") as file:
        file["x"], file["train/y"] = x, y
    table = pd.DataFrame({"a": x[:, 0], "label": y, "b": x[:, 1], "id": y + 7})
    table.to_csv("t.csv", index=False)
    table.to_parquet("t.parquet")
    table.to_feather("t.feather")


TABLE = "df = pd.read_csv('t.csv')\n"
ARCHIVE = "d = np.load('d.npz')\n"
FILE = "f = h5py.File('d.h5', 'r')\n"


@pytest.mark.parametrize(
    ("lines", "x", "y"),
    [
        ("", "np.load('x.npy')", "np.load('y.npy')"),
        (ARCHIVE, "d['x_train']", "d['y_train']"),
        ("with np.load('d.npz') as d:\n    x, y = d['x_train'], d['y_train']\n", "x", "y"),
        (FILE, "f['x'][:]", "f['train']['y'][()]"),
        (FILE, "np.array(f['x'])", "np.array(f['train/y'])"),
        ("with h5py.File('d.h5') as f:\n    x, y = f['x'][...], f['train/y'][:]\n", "x", "y"),
        (TABLE, "df[['a', 'b']].values", "df['label']"),
        (f"{TABLE}NAMES = ['b', 'id']\n", "df[NAMES].to_numpy()", "df['label'].values"),
        (f"{TABLE}y = df.pop('label')\n", "df.values", "y"),
        (f"{TABLE}x = df.copy()\ny = x.pop('label')\n", "x", "y"),
        (TABLE, "df.drop('label', axis=1)", "df['label']"),
        (TABLE, "df.drop(columns=['label']).to_numpy()", "df['label'].to_numpy()"),
        ("df = pd.read_parquet('t.parquet')\n", "df[['a']].values", "df.pop('label')"),
        ("df = pd.read_feather('t.feather')\n", "df[['b', 'a']].values", "df['label'].values"),
    ],
)
def test_the_stream_that_it_writes_gives_the_rows_that_the_script_loads(files, lines, x, y):
    loading = f"import h5py, keras, numpy as np, pandas as pd, tensorflow as tf\n{lines}"
    for ending in (f"model.fit({x}, {y})", f"{SLICES}(({x}, {y})).shuffle(9).batch(4)"):
        fix = fix_of(f"{loading}model = keras.Sequential()\n{ending}\n", "")
        (stream,) = re.findall(r"^data = (memfit\.stream\(.*\))(?:, then| in place)", fix)

        known = {"np": np, "pd": pd, "h5py": h5py, "memfit": memfit}
        exec(lines, known)
        expected = [eval(x, known), eval(y, known)]
        data = eval(stream, known)

        assert f"batch_size={data.batch_size}, shuffle=True" in stream
        got = [np.concatenate(one) for one in zip(*data, strict=True)]
        assert [one.shape for one in got] == [np.shape(one) for one in expected]
        assert in_order(*got).tolist() == in_order(*expected).tolist()


def in_order(x, y):
    rows = np.column_stack([x, y]).astype("float32")
    return rows[np.lexsort(rows.T)]
