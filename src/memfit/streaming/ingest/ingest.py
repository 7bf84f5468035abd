"""`memfit.ingest`: data written once in a random order, so that every epoch is well mixed."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memfit.arguments import check_size_text, check_whole_number
from memfit.errors import UsageError
from memfit.messages import show_progress
from memfit.streaming.data.reading import ReadOptions
from memfit.streaming.data.source import row_bytes
from memfit.streaming.ingest.partition import plan_partition, region_bytes
from memfit.streaming.ingest.passes import JOURNAL, write_partition
from memfit.streaming.open_data import open_data
from memfit.streaming.store.atomic_folder import check_room, find_size, find_unfinished, unfinished


def ingest(  # noqa: PLR0913  # as for `stream`, and where to
    source: Any,
    folder: str | os.PathLike[str],
    *,
    budget: str = "512MB",
    seed: int = 0,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    features: str = "columns",
    image_size: tuple[int, int] | None = None,
    filesystem: Any = None,
) -> Path:
    """Writes data into a folder, its rows in a random order; every order is equally likely.

    `memfit.stream` then reads large blocks from it, and batches are as good as drawn from all
    rows. The folder appears when it is complete. If the process is killed or interrupted, the same
    call continues where it stopped: finished work is kept beside the folder, with checksums.
    Nothing is left behind after an error.

    Args:
        source: As for `memfit.stream`.
        folder: Where to write; it must not exist yet. It takes as much room as the rows,
            and while it is written up to a third of the budget more.
        budget: Approximate memory budget.
        seed: Seed of the random order.
        label: The column that `features="matrix"` leaves by itself; give it to `stream`, too.
        columns: The columns to write, as for `memfit.stream`.
        features: `"matrix"` writes columns of single numbers as one, which is read much faster.
        image_size: Height and width that pictures are resized to, as for `memfit.stream`.
        filesystem: The `pyarrow.fs.FileSystem` that paths of the source are in, the same.

    Returns:
        The folder.

    Raises:
        DataNotFoundError: There is no such file.
        DataError: The data cannot be read as it is, or the disk is too small.
        BudgetError: The budget is too small for this data.
        UsageError: The folder already exists, or the seed is not an integer.

    Example:
    ```python
    memfit.ingest(("x.npy", "y.npy"), "cache/")
    data = memfit.stream("cache/", batch_size=256, shuffle=True)
    ```
    """
    options = ReadOptions(columns, label, features, image_size, filesystem)
    return write_shuffled(source, Path(folder), options, budget=budget, seed=seed)


def write_shuffled(
    source: Any, folder: Path, options: ReadOptions, *, budget: str, seed: int
) -> Path:
    """Writes data into a folder; `ingest` with one value for how the source is read."""
    check_whole_number("seed", seed, least=0)
    if folder.exists():
        raise UsageError(
            f"{folder} already exists. Give another folder, or remove it to ingest again."
        )
    opened, _ = open_data(source, options)
    budget_bytes = check_size_text("budget", budget)
    partition = plan_partition(opened, budget_bytes, seed)
    needed_bytes = opened.num_rows * row_bytes(opened.schema)
    needed_bytes += min(needed_bytes, region_bytes(budget_bytes))
    check_room(needed_bytes - find_size(find_unfinished(folder)), folder)
    title = f"ingesting {folder.name}"
    with (
        unfinished(folder, keeps=True) as beside,
        show_progress(2 * opened.num_rows, title) as tell,
    ):
        write_partition(partition, beside, tell).write(beside)
        opened.check()
        (beside / JOURNAL).unlink()
    return folder
