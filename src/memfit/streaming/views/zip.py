"""Sources side by side: features from one file, labels from another, row by row."""

import dataclasses
import hashlib
from collections.abc import Mapping

from memfit.errors import DataError
from memfit.streaming.data.reading import chunk_bytes
from memfit.streaming.data.source import (
    Array,
    Ranges,
    Schema,
    Source,
    Values,
    joint_scratch_bytes,
    read_into,
)


class Zip:
    """Sources with the same number of rows, as one.

    A source with one column gives it the name of the part; of others the columns are called
    `"part.column"`.

    Args:
        parts: The sources by name.

    Raises:
        DataError: They differ in rows.
    """

    def __init__(self, parts: Mapping[str, Source]) -> None:
        _check_rows(parts)
        self.parts = dict(parts)
        self._names = {name: _names(name, part.schema) for name, part in parts.items()}
        sources = list(parts.values())
        self.num_rows = sources[0].num_rows
        self.schema: Schema = tuple(
            dataclasses.replace(one, name=self._names[name][one.name])
            for name, part in parts.items()
            for one in part.schema
        )
        # Those with the largest groups are the costliest to read in other parts than these.
        grouped = [one for one in sources if one.groups is not None]
        self.groups = max(grouped, key=chunk_bytes).groups if grouped else None
        self.is_shuffled = all(one.is_shuffled for one in sources)
        self.scratch_bytes = joint_scratch_bytes(sources)

    def narrow(self, column: str) -> "Zip":
        """Returns the part that has a column, without the others."""
        name = next(name for name, own in self._names.items() if column in own.values())
        return Zip({name: self.parts[name]})

    def fingerprint(self) -> str:
        """Returns a text made of those of all parts."""
        digest = hashlib.sha256()
        for name, part in self.parts.items():
            digest.update(f"{name}={part.fingerprint()};".encode())
        return digest.hexdigest()[:32]

    def check(self) -> None:
        """Raises if a part was changed."""
        for part in self.parts.values():
            part.check()

    def read(self, start: int, stop: int) -> dict[str, Values]:
        """Returns rows of all parts."""
        return {
            self._names[name][column]: values
            for name, part in self.parts.items()
            for column, values in part.read(start, stop).items()
        }

    def read_into(self, ranges: Ranges, into: Mapping[str, Array]) -> None:
        """Reads rows of all parts into arrays."""
        for name, part in self.parts.items():
            names = self._names[name]
            read_into(part, ranges, {one.name: into[names[one.name]] for one in part.schema})


def _names(part: str, schema: Schema) -> dict[str, str]:
    if len(schema) == 1:
        return {schema[0].name: part}
    return {one.name: f"{part}.{one.name}" for one in schema}


def _check_rows(parts: Mapping[str, Source]) -> None:
    rows = {name: part.num_rows for name, part in parts.items()}
    if len(set(rows.values())) > 1:
        each = ", ".join(f"{name} has {number}" for name, number in rows.items())
        raise DataError(
            f"The parts of the data differ in rows: {each}. Expected one label and one weight for "
            "each row of the features. Check that the files belong together."
        )
