"""How far `memfit.ingest` has come: a file of lines, from which a later try goes on."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memfit.streaming.store.format import Checksum


@dataclass(slots=True)
class IngestProgress:
    """What an earlier try has done.

    Attributes:
        key: What it was written from, and how.
        steps: Steps of each column of sequences in each region, once they are counted.
        num_chunks: Chunks that are in their regions.
        digests: A checksum of each file after these.
        crcs: Checksums of all regions of each file, once all chunks are in them.
        settled: Checksums of each region that is in its final order.
    """

    key: str = ""
    steps: dict[str, list[int]] = field(default_factory=dict)
    num_chunks: int = 0
    digests: list[int] = field(default_factory=list)
    crcs: list[list[int]] = field(default_factory=list)
    settled: list[list[Checksum]] = field(default_factory=list)


class Journal:
    """A file to which a line is added for each step that was done.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> IngestProgress:
        """Returns what was done; a line that was cut by a kill does not count."""
        progress = IngestProgress()
        text = self._path.read_bytes() if self._path.exists() else b""
        whole = text[: text.rfind(b"\n") + 1]
        try:
            for line in whole.splitlines():
                for name, value in json.loads(line).items():
                    if name == "settled":
                        progress.settled.append([Checksum(*one) for one in value])
                    else:
                        setattr(progress, name, value)
        except (ValueError, AttributeError, TypeError):  # damaged by somebody
            return IngestProgress()
        if len(whole) < len(text):
            os.truncate(self._path, len(whole))
        return progress

    def write(self, **entry: Any) -> None:
        """Adds a line. A killed process has written all of it, or it does not count."""
        with self._path.open("ab", buffering=0) as file:
            file.write(json.dumps(entry).encode() + b"\n")

    def sync(self) -> None:
        """Returns when all lines are on the disk."""
        with self._path.open("ab") as file:
            os.fsync(file.fileno())
