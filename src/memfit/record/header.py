"""The first line of a recording: which process writes it, with which versions and settings."""

import os
import platform
import time
from collections.abc import Sequence

import memfit
from memfit.budget import Budget
from memfit.measure.environment import read_settings
from memfit.measure.limits import Limit, find_limit
from memfit.record.samples import FORMAT, Header
from memfit.record.secrets import mask_command


def make_header(
    role: str,
    command: Sequence[str],
    *,
    limit: Limit | None = None,
    budget: Budget | None = None,
) -> Header:
    """Returns the header of a file that this process writes.

    Args:
        role: `"supervisor"` (from outside) or `"agent"` (inside the training).
        command: What was run, as the user typed it; secrets in it are masked.
        limit: The limit that the training would reach first. Defaults to that of this process.
        budget: What every `fit` may take.
    """
    return Header(
        format=FORMAT,
        role=role,
        pid=os.getpid(),
        t_s=time.monotonic(),
        wall_time_s=time.time(),
        memfit=memfit.__version__,
        python=platform.python_version(),
        platform=platform.platform(),
        command=mask_command(command),
        limit=limit or find_limit(os.getpid()),
        settings=read_settings(),
        budget=budget,
    )
