"""Ingests data in processes that are killed in the middle of a write, until one comes to its end.

killed_ingest.py SOURCE FOLDER TRIES WRITES...: the first process dies in its WRITES-th write, and
so on, the last of them again and again, but no more than TRIES. A SOURCE that is a number is a
generator of so many sequences.
"""

import itertools
import os
import signal
import sys

import numpy as np

from memfit.streaming.ingest import passes
from memfit.streaming.ingest.ingest import ingest
from memfit.streaming.store.npy_files import ColumnFile

whole_write = ColumnFile.write


def generate(number):
    for row in range(number):
        yield {"x": np.full(row % 10, row), "y": row}


def die_in(left):
    def write(self, start, rows, crc=0):
        nonlocal left
        left -= 1
        if left == 0:
            whole_write(self, start, rows[: len(rows) // 2], crc)
            os.kill(os.getpid(), signal.SIGKILL)
        return whole_write(self, start, rows, crc)

    return write


def main(source, folder, tries, *writes):
    value = (lambda: generate(int(source))) if source.isdigit() else source
    passes._SYNC_BYTES = 2_000
    moments = itertools.chain(writes, itertools.repeat(writes[-1]))
    for number in itertools.islice(moments, int(tries)):
        if os.fork() == 0:
            ColumnFile.write = die_in(int(number))
            ingest(value, folder, budget="10kB", seed=3)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.wait()[1])
        if code == 0:
            return
        assert code == -signal.SIGKILL


if __name__ == "__main__":
    main(*sys.argv[1:])
