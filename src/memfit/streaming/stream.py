"""`memfit.stream`: data from disk that Keras trains on, within a budget of bytes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memfit.arguments import check_size_text
from memfit.errors import UsageError
from memfit.streaming.data.reading import ReadOptions
from memfit.streaming.data_adapter import Stream
from memfit.streaming.loader.loader import Loader
from memfit.streaming.loader.map_batches import learn_mapping
from memfit.streaming.loader.settings import LoaderSettings
from memfit.streaming.open_data import open_data
from memfit.streaming.spill import spill
from memfit.streaming.views.class_weights import weigh_classes
from memfit.streaming.views.oversample import draw_rows
from memfit.streaming.views.sequence_lengths import measure


def stream(  # noqa: PLR0913  # what is streamed, and how
    source: Any,
    *,
    batch_size: int | None = None,
    tokens: int | None = None,
    shuffle: bool = False,
    budget: str = "256MB",
    seed: int = 0,
    drop_remainder: bool = False,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    features: str = "columns",
    image_size: tuple[int, int] | None = None,
    filesystem: Any = None,
    class_weight: Mapping[Any, float] | None = None,
    oversample: Any = None,
    map: Callable[..., Any] | None = None,  # noqa: A002  # as everywhere else
) -> Stream:
    """Streams data from disk into `fit`, `evaluate`, `predict` or a loop, within a budget.

    The order is a pure function of seed and epoch: the same on every machine and backend.
    Numbers are passed on as they are: a NaN stays a NaN. Some formats, such as Parquet and Arrow,
    have nulls: a null becomes a NaN in a column of floats and is refused in any other.

    Args:
        source: A path, a URI, a glob, a list of paths, an array, or a tuple `(features, labels)` or
            `(features, labels, weights)` of these. Features may be a dict or a tuple of them.
            Arrays larger than the budget are written to a cache on disk, once, and not held: the
            memory is free when nothing else holds them. Any object with `__len__` and
            `__getitem__` works if it returns a row: `(features, label)`, a dict or an array.
            A function without arguments that returns an iterator of rows, a `tf.data.Dataset` and
            other objects that can be iterated are read once, now, into that cache.
        batch_size: Rows per batch.
        tokens: Instead of `batch_size`, for sequences that differ in length: rows of similar
            length make a batch, as many as fit, so that rows times the longest is at most this.
        shuffle: Whether rows come in a random order, another one in every epoch.
        budget: The most memory that the stream takes: windows, reads and batches.
        seed: Seed of the random order.
        drop_remainder: Whether a last batch with fewer rows is left out.
        label: The column that is the label, where one file has several columns.
        columns: The columns to read, where one file has several, in this order; the label need
            not be among them. All of them by default.
        features: `"columns"` gives several columns as a dict, for models with an input for each;
            `"matrix"` puts those of single numbers side by side as float32, for one input.
        image_size: Height and width that pictures are resized to, for a folder of pictures in a
            subfolder for each class, and for tar shards. Needed if they differ in size.
        filesystem: The `pyarrow.fs.FileSystem` that paths are in, if a URI such as
            `s3://bucket/rides/*.parquet` does not say all.
        class_weight: How much rows count by their label, as in `fit`: `{0: 1.0, 1: 5.0}`. Labels
            that it does not name count 1. Weights that the data has are multiplied with these.
        oversample: How often rows come, relative to one another: by their label, as in
            `{0: 1, 1: 20}`, or a number for each row, or the name of a column of such numbers.
            They are drawn again for every epoch, which has as many rows as the data.
        map: Your own code for each batch, run in threads: `map=lambda x, y: (x / 255, y)`.

    Raises:
        DataNotFoundError: There is no such file.
        DataError: The data cannot be streamed as it is.
        BudgetError: The budget is too small for this data; the message names one that works.
        UsageError: An argument is not valid.

    Example:
    ```python
    data = memfit.stream(("x.npy", "y.npy"), batch_size=256, shuffle=True, budget="256MB")
    train, validation = data.split(0.9)
    model.fit(train, validation_data=validation, epochs=10)

    table = memfit.stream("rides/*.parquet", batch_size=256, label="price", features="matrix")
    photos = memfit.stream("photos/", batch_size=32, shuffle=True, image_size=(64, 64))
    reviews = memfit.stream("reviews.parquet", tokens=16_384, shuffle=True, label="score")
    ```
    """
    settings = LoaderSettings(
        batch_size,
        check_size_text("budget", budget),
        seed if shuffle else None,
        drop_remainder,
        tokens=tokens,
    )
    if tokens is not None and oversample is not None:
        _refuse_oversample()
    opened, layout = open_data(
        source, ReadOptions(columns, label, features, image_size, filesystem)
    )
    opened = spill(opened, settings.budget_bytes)
    lengths = None
    if tokens is not None:
        opened = measured = measure(opened, tokens)
        lengths = measured.lengths
    if oversample is not None:
        opened, layout = draw_rows(opened, layout, oversample)
    if class_weight is not None:
        opened, layout = weigh_classes(opened, layout, class_weight)
    mapped = None
    if map is not None:
        num_rows = settings.most_rows if lengths is None else next(lengths.cut_in_order())
        mapped = learn_mapping(map, opened, layout, num_rows)
    return Stream(Loader(opened, layout, settings, mapped))


def _refuse_oversample() -> None:
    raise UsageError(
        "oversample draws different rows in every epoch, and tokens needs their lengths in "
        "advance. Received: both. Give batch_size instead of tokens, or class_weight instead of "
        "oversample."
    )
