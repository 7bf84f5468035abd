"""What a user asks of a stream: batches of which size, in which order, within which budget."""

import dataclasses
from dataclasses import dataclass

from memfit.arguments import check_whole_number
from memfit.errors import UsageError


@dataclass(frozen=True, slots=True)
class LoaderSettings:
    """What a user asks of a stream.

    Attributes:
        batch_size: Rows of a batch; `None` if `tokens` says how many.
        budget_bytes: The most memory to use.
        seed: What the order is made from; `None` for the order of the source.
        drop_remainder: Whether a last batch with fewer rows is left out.
        shard: Which part of the rows is given, of `num_shards`.
        num_shards: How many parts there are.
        tokens: The most that rows times the longest sequence of a batch may be.
    """

    batch_size: int | None
    budget_bytes: int
    seed: int | None = None
    drop_remainder: bool = False
    shard: int = 0
    num_shards: int = 1
    tokens: int | None = None

    def __post_init__(self) -> None:
        if (self.batch_size is None) == (self.tokens is None):
            raise UsageError(
                "A stream needs batch_size (rows per batch) or tokens (maximum of rows times the "
                f"longest sequence of a batch). Received: batch_size={self.batch_size!r} and "
                f"tokens={self.tokens!r}. Give one of the two."
            )
        if self.tokens is not None:
            check_whole_number("tokens", self.tokens)
        else:
            check_whole_number("batch_size", self.batch_size)
        if self.tokens is not None and self.drop_remainder:
            raise UsageError(
                "drop_remainder is for batches of one size. Received: drop_remainder=True and "
                f"tokens={self.tokens}, with which sizes differ. Leave it out, or give batch_size."
            )
        if self.seed is not None:
            check_whole_number("seed", self.seed, least=0)

    @property
    def most_rows(self) -> int:
        """The most rows that a batch may have: no row has less than one token."""
        found = self.batch_size if self.tokens is None else self.tokens
        assert found is not None  # noqa: S101  # one of the two is given
        return int(found)

    def take_shard(self, index: int, count: int, num_rows: int) -> "LoaderSettings":
        """Returns the settings of one of `count` equal parts of `num_rows` rows.

        Raises:
            UsageError: There is no such part, this is one already, or batches differ in size.
        """
        if self.tokens is not None:
            raise UsageError(
                "A stream with tokens cannot be split into shards: their numbers of batches "
                "would differ. Give batch_size, or give each process its own files."
            )
        check_whole_number("count", count)
        check_whole_number("index", index, least=0)
        if index >= count or count > num_rows or self.num_shards > 1:
            raise UsageError(
                f"Cannot take shard {index} of {count}: this stream has {num_rows} rows and is "
                f"shard {self.shard} of {self.num_shards}. Expected an index below the count, a "
                "row or more for each shard, and a stream that is not a shard, as in shard(0, 4)."
            )
        return dataclasses.replace(self, shard=int(index), num_shards=int(count))
