"""The loaders that `stream.py` compares, each used as its own pages advise.

Each is a function of the folder with the data and of a budget in bytes, which only memfit knows. It
gives epochs, which give batches `(x, y)`. All shuffle as well as they offer to: in whole where
they can, else with a buffer of `BUFFER_ROWS`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from stream_data import GROUP_ROWS, WIDTH

BATCH = 1024
BUFFER_ROWS = 100_000
WORKERS = 2

Epochs = Iterator[Iterator[Any]]


@dataclass(frozen=True, slots=True)
class Reader:
    """A loader.

    Attributes:
        read: Gives epochs.
        data: What must be written for it.
        package: What must be installed.
        backend: What Keras runs on, where it takes part.
        budget_bytes: What memfit is told to keep to.
    """

    read: Callable[[Path, int], Epochs]
    data: tuple[str, ...] = ("npy",)
    package: str = "numpy"
    backend: str | None = None
    budget_bytes: int = 64_000_000


# ---- memfit


def read_memfit(source: Callable[[Path], Any], folder: Path, budget_bytes: int) -> Epochs:
    """A stream, without Keras."""
    from memfit.streaming.loader.loader import Loader
    from memfit.streaming.loader.settings import LoaderSettings
    from memfit.streaming.open_data import open_data

    loader = Loader(*open_data(source(folder)), LoaderSettings(BATCH, budget_bytes, seed=1))
    while True:
        yield loader.run()


# ---- arrays: in memory, or mapped


def read_memmap(folder: Path, _: int) -> Epochs:
    """Rows at random from a mapped file."""
    x, y = (np.load(folder / name, mmap_mode="r") for name in ("x.npy", "y.npy"))
    rng = np.random.default_rng(1)
    while True:
        order = rng.permutation(len(y))
        parts = (order[at : at + BATCH] for at in range(0, len(y), BATCH))
        yield ((x.take(part, axis=0), y.take(part)) for part in parts)


def read_keras(folder: Path, _: int) -> Epochs:
    """What `fit` on arrays in memory takes its batches from."""
    import keras
    from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter

    x, y = np.load(folder / "x.npy"), np.load(folder / "y.npy")
    adapter = ArrayDataAdapter(x, y, batch_size=BATCH, shuffle=True)
    feeds = {
        "tensorflow": adapter.get_tf_dataset,
        "jax": adapter.get_jax_iterator,
        "torch": adapter.get_torch_dataloader,
    }
    while True:
        yield iter(feeds[keras.backend.backend()]())


def read_torch(workers: int, folder: Path, _: int) -> Epochs:
    """A `DataLoader` over a mapped file that is asked for a batch of rows at once."""
    import torch
    from torch.utils.data import DataLoader, Dataset

    class Rows(Dataset):  # type: ignore[misc]  # torch gives Any
        def __init__(self) -> None:
            self.x, self.y = (np.load(folder / one, mmap_mode="r") for one in ("x.npy", "y.npy"))

        def __len__(self) -> int:
            return len(self.y)

        def __getitem__(self, index: int) -> Any:
            return self.x[index], self.y[index]

        def __getitems__(self, rows: list[int]) -> Any:
            return torch.from_numpy(self.x[rows]), torch.from_numpy(self.y[rows])

    loader = DataLoader(
        Rows(), BATCH, shuffle=True, num_workers=workers, collate_fn=lambda batch: batch
    )
    while True:
        yield iter(loader)


def read_grain(folder: Path, _: int) -> Epochs:
    """Grain over a mapped file, without threads, as it advises for rows that are at hand."""
    for epoch in range(1_000_000):
        yield iter(make_grain(folder, seed=epoch))


def make_grain(folder: Path, seed: int) -> Any:
    """Returns a Grain pipeline of one epoch."""
    import grain

    class Rows:
        def __init__(self) -> None:
            self.x, self.y = (np.load(folder / one, mmap_mode="r") for one in ("x.npy", "y.npy"))

        def __len__(self) -> int:
            return len(self.y)

        def __getitem__(self, index: int) -> Any:
            return self.x[index], self.y[index]

    rows = grain.MapDataset.source(Rows()).shuffle(seed=seed)
    return rows.to_iter_dataset(grain.ReadOptions(num_threads=0)).batch(BATCH)


# ---- tf.data


def read_slices(folder: Path, _: int) -> Epochs:
    """Arrays in memory, all rows in the buffer of the shuffle."""
    import tensorflow as tf

    x, y = np.load(folder / "x.npy"), np.load(folder / "y.npy")
    rows = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(y), seed=1)
    batches = rows.batch(BATCH).prefetch(tf.data.AUTOTUNE)
    while True:
        yield iter(batches)


def read_tfrecord(folder: Path, _: int) -> Epochs:
    """Records, parsed batch by batch."""
    while True:
        yield iter(make_tfrecord(folder))


def make_tfrecord(folder: Path) -> Any:
    """Returns a `tf.data` pipeline of records."""
    import tensorflow as tf

    features = {
        "x": tf.io.FixedLenFeature([WIDTH], tf.float32),
        "y": tf.io.FixedLenFeature([], tf.float32),
    }

    def parse(records: Any) -> Any:
        found = tf.io.parse_example(records, features)
        return found["x"], found["y"]

    records = tf.data.TFRecordDataset(str(folder / "data.tfrecord"))
    batches = records.shuffle(BUFFER_ROWS, seed=1).batch(BATCH)
    return batches.map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


# ---- Arrow


def read_rows_at_random(folder: Path, _: int) -> Epochs:
    """A mapped Hugging Face dataset, shuffled by a list of rows."""
    import datasets

    rows = datasets.load_from_disk(folder / "hf").with_format("numpy")
    for epoch in range(1_000_000):
        batches = rows.shuffle(seed=epoch).iter(BATCH)
        yield ((batch["x"], batch["y"]) for batch in batches)


def read_iterable(folder: Path, _: int) -> Epochs:
    """A Hugging Face dataset that is streamed."""
    rows = make_iterable(folder)
    for epoch in range(1_000_000):
        rows.set_epoch(epoch)
        yield ((batch["x"], batch["y"]) for batch in rows.iter(BATCH))


def make_iterable(folder: Path) -> Any:
    """Returns a streamed dataset, its shards and a buffer shuffled."""
    import datasets

    rows = datasets.load_from_disk(folder / "hf").to_iterable_dataset(num_shards=64)
    return rows.with_format("numpy").shuffle(seed=1, buffer_size=BUFFER_ROWS // 10)


def read_parquet_file(folder: Path, _: int) -> Epochs:
    """`ParquetFile.iter_batches`, with a buffer to shuffle in."""
    import pyarrow.parquet as pq

    while True:
        yield mix(pq.ParquetFile(folder / "data.parquet").iter_batches(GROUP_ROWS))


def read_arrow_dataset(folder: Path, _: int) -> Epochs:
    """`pyarrow.dataset`, with a buffer to shuffle in."""
    from pyarrow import dataset

    while True:
        yield mix(dataset.dataset(folder / "data.parquet").to_batches())


def mix(parts: Iterator[Any]) -> Iterator[Any]:
    """Gives batches out of a buffer, which is filled and permuted again and again."""
    rng = np.random.default_rng(1)
    kept: list[tuple[Any, Any]] = []
    num_kept = 0
    for part in parts:
        x = part.column("x").flatten().to_numpy().reshape(-1, WIDTH)
        kept.append((x, part.column("y").to_numpy()))
        num_kept += part.num_rows
        if num_kept >= BUFFER_ROWS:
            yield from _empty(kept, rng)
            num_kept = 0
    if kept:
        yield from _empty(kept, rng)


def _empty(kept: list[tuple[Any, Any]], rng: Any) -> Iterator[Any]:
    x, y = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    kept.clear()
    order = rng.permutation(len(y))
    for at in range(0, len(y), BATCH):
        rows = order[at : at + BATCH]
        yield x.take(rows, axis=0), y.take(rows)


def read_ray(folder: Path, _: int) -> Epochs:
    """Ray Data on Parquet, its blocks and a local buffer shuffled."""
    import ray

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    rows = ray.data.read_parquet(str(folder / "data.parquet")).randomize_block_order(seed=1)
    while True:
        batches = rows.iter_batches(
            batch_size=BATCH, batch_format="numpy", local_shuffle_buffer_size=BUFFER_ROWS
        )
        yield ((batch["x"], batch["y"]) for batch in batches)


# ---- MosaicML


def import_streaming() -> Any:
    """Returns MosaicML Streaming.

    It imports torchvision, which needs operators that it brings for a torch with CUDA only; none of
    them is used here.
    """
    import torch

    if not hasattr(torch.ops.torchvision, "nms"):
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import streaming

    return streaming


def read_mosaic(folder: Path, _: int) -> Epochs:
    """MosaicML Streaming with a local copy and two workers."""
    loader = make_mosaic(folder, WORKERS)
    while True:
        yield ((batch["x"], batch["y"]) for batch in loader)


def make_mosaic(folder: Path, workers: int) -> Any:
    """Returns a loader of MosaicML Streaming."""
    streaming = import_streaming()
    rows = streaming.StreamingDataset(local=str(folder / "mds"), shuffle=True, batch_size=BATCH)
    return streaming.StreamingDataLoader(rows, batch_size=BATCH, num_workers=workers)


def _npy(folder: Path) -> Any:
    return folder / "x.npy", folder / "y.npy"


READERS = {
    "memfit, ingested": Reader(partial(read_memfit, lambda one: one / "store"), ("npy", "store")),
    "memfit, .npy": Reader(partial(read_memfit, _npy)),
    "memfit, Parquet": Reader(
        partial(read_memfit, lambda one: one / "data.parquet"),
        ("parquet",),
        "pyarrow",
        budget_bytes=128_000_000,
    ),
    "NumPy memmap": Reader(read_memmap),
    "Keras arrays, TensorFlow": Reader(read_keras, package="tensorflow", backend="tensorflow"),
    "Keras arrays, JAX": Reader(read_keras, package="jax", backend="jax"),
    "Keras arrays, torch": Reader(read_keras, package="torch", backend="torch"),
    "tf.data, in memory": Reader(read_slices, package="tensorflow"),
    "TFRecord": Reader(read_tfrecord, ("tfrecord",), "tensorflow"),
    "torch DataLoader": Reader(partial(read_torch, 0), package="torch"),
    "torch DataLoader, 2 workers": Reader(partial(read_torch, WORKERS), package="torch"),
    "Grain": Reader(read_grain, package="grain"),
    "HF datasets, at random": Reader(read_rows_at_random, ("hf",), "datasets"),
    "HF datasets, streamed": Reader(read_iterable, ("hf",), "datasets"),
    "pyarrow, ParquetFile": Reader(read_parquet_file, ("parquet",), "pyarrow"),
    "pyarrow, dataset": Reader(read_arrow_dataset, ("parquet",), "pyarrow"),
    "MosaicML Streaming, 2 workers": Reader(read_mosaic, ("mds",), "streaming"),
    "Ray Data": Reader(read_ray, ("parquet",), "ray"),
}
