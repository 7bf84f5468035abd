"""What is in some data, and what a budget makes of it, without reading its rows."""

from dataclasses import dataclass

from memfit.arguments import check_whole_number
from memfit.streaming.data.layout import Layout
from memfit.streaming.data.source import Source, row_bytes
from memfit.streaming.order.shuffle_plan import gather_facts, least_budget_bytes, plan_mixing

BUDGETS_BYTES = (16_000_000, 64_000_000, 256_000_000, 1_000_000_000, 4_000_000_000)


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """A column.

    Attributes:
        name: Its name.
        dtype: The type of its values.
        shape: The shape of a row, or of a step of its sequences.
        mean_length: Steps of a sequence on average; `None` if all rows have the same shape.
        row_bytes: What a row takes in memory, on average.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    mean_length: float | None
    row_bytes: float


@dataclass(frozen=True, slots=True)
class BudgetOutlook:
    """What a budget makes of a shuffled stream.

    Attributes:
        budget_bytes: The budget.
        deff: The design effect on sorted data.
        window_rows: Rows that are mixed with one another.
    """

    budget_bytes: int
    deff: float
    window_rows: int


@dataclass(frozen=True, slots=True)
class DataInfo:
    """What is in some data.

    Attributes:
        num_rows: Its rows.
        size_bytes: What all rows would take in memory.
        columns: Its columns.
        parts: What Keras gets: trees of column names for inputs, targets and weights.
        num_groups: Parts that can only be read whole; `None` if any rows can.
        largest_group: Rows of the largest of these.
        is_shuffled: Whether the rows are in a random order, as `memfit.ingest` leaves them.
        fingerprint: What tells this data from other data.
        batch_size: Rows of a batch, for what follows.
        least_budget_bytes: The smallest budget of a shuffled stream.
        expected: What larger budgets make of it.
    """

    num_rows: int
    size_bytes: int
    columns: tuple[ColumnInfo, ...]
    parts: tuple[object, ...]
    num_groups: int | None
    largest_group: int | None
    is_shuffled: bool
    fingerprint: str
    batch_size: int
    least_budget_bytes: int
    expected: tuple[BudgetOutlook, ...]


def inspect_data(source: Source, layout: Layout, batch_size: int) -> DataInfo:
    """Returns what is in a source, and what budgets make of it.

    Raises:
        UsageError: `batch_size` is not an integer above 0.
    """
    check_whole_number("batch_size", batch_size)
    data = gather_facts(source, batch_size, shuffles=True)
    # A little more, so that it is still enough when it is written with three figures.
    least_bytes = round(1.01 * least_budget_bytes(data))
    expected: list[BudgetOutlook] = []
    for budget_bytes in BUDGETS_BYTES:
        is_enough = bool(expected) and expected[-1].deff == 1.0  # more would not be better
        if budget_bytes >= least_bytes and not is_enough:
            mixing = plan_mixing(data, budget_bytes)
            expected.append(BudgetOutlook(budget_bytes, mixing.deff, mixing.window_rows))
    return DataInfo(
        num_rows=source.num_rows,
        size_bytes=round(source.num_rows * row_bytes(source.schema)),
        columns=tuple(
            ColumnInfo(one.name, str(one.dtype), one.shape, one.mean_length, one.row_bytes)
            for one in source.schema
        ),
        parts=layout.parts,
        num_groups=data.num_groups,
        largest_group=data.largest_group,
        is_shuffled=source.is_shuffled,
        fingerprint=source.fingerprint(),
        batch_size=batch_size,
        least_budget_bytes=least_bytes,
        expected=tuple(expected),
    )
