"""The training that `overhead.py` runs with and without tools: a small Dense model.

`training.py WIDTH EPOCHS STEPS` trains and prints its figures as JSON; `training.py calibrate`
prints the width at which one step takes about 2 ms here. `KERAS_BACKEND` names the backend.
"""

import time

FIRST_LINE_S = time.time()  # before anything is imported: when the script got its turn

import itertools  # noqa: E402  # after the first line's time, on purpose
import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from dataclasses import asdict, dataclass  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

LOADED_BEFORE = tuple(name for name in ("tensorflow", "jax", "torch") if name in sys.modules)
STEP_S = 0.002
BATCH_SIZE = 32
# A step of Keras on torch takes near 2 ms even where there is next to nothing to compute.
WIDTHS = (64, 128, 192, 256, 384, 512, 640, 768, 1024, 1280, 1536, 2048)


@dataclass(frozen=True, slots=True)
class Figures:
    """What one training tells of itself.

    Attributes:
        first_line_s: Seconds since 1970 at the first line of this script.
        loaded_before: Backends that somebody had imported before that line.
        steps: Steps of an epoch.
        epoch_s: Seconds of each epoch but the first, which compiles.
        rss_bytes: Resident memory at the end of `fit`.
        peak_rss_bytes: The most that it has been.
        parent_cpu_s: CPU time of the parent process during `epoch_s`; under `memfit run` that
            is the supervisor.
    """

    first_line_s: float
    loaded_before: tuple[str, ...]
    steps: int
    epoch_s: tuple[float, ...]
    rss_bytes: int
    peak_rss_bytes: int
    parent_cpu_s: float


def main() -> None:
    """Trains or calibrates, and prints one line of JSON."""
    if sys.argv[1] == "calibrate":
        print(json.dumps({"width": calibrate()}))
        return
    width, epochs, steps = (int(argument) for argument in sys.argv[1:4])
    print(json.dumps(asdict(train(width, epochs, steps))))


def train(width: int, epochs: int, steps: int) -> Figures:
    """Trains for `epochs` timed epochs after a first one, and returns the figures."""
    ends_s: list[float] = []
    parent_s: list[float] = []

    def end_epoch(*_: Any) -> None:
        """The first and the last one see the parent; what lies between is steady training."""
        ends_s.append(time.perf_counter())
        if len(ends_s) in (1, epochs + 1):
            parent_s.append(_cpu_s(os.getppid()))

    _fit(width, epochs + 1, steps, end_epoch)
    status = _status()
    return Figures(
        first_line_s=FIRST_LINE_S,
        loaded_before=LOADED_BEFORE,
        steps=steps,
        epoch_s=_differences(ends_s),
        rss_bytes=status["VmRSS"],
        peak_rss_bytes=status["VmHWM"],
        parent_cpu_s=parent_s[-1] - parent_s[0],
    )


def calibrate() -> int:
    """Returns the width whose step comes nearest to `STEP_S`."""
    nearest, nearest_off_s = WIDTHS[0], float("inf")
    for width in WIDTHS:
        step_s = _step_s(width)
        if abs(step_s - STEP_S) < nearest_off_s:
            nearest, nearest_off_s = width, abs(step_s - STEP_S)
        if step_s > 1.5 * STEP_S:
            break
    return nearest


def _step_s(width: int, *, epochs: int = 5, steps: int = 60) -> float:
    ends_s: list[float] = []
    _fit(width, epochs, steps, lambda *_: ends_s.append(time.perf_counter()))
    return min(_differences(ends_s)) / steps  # others on the machine only make it longer


def _fit(width: int, epochs: int, steps: int, end_epoch: Any) -> None:
    """Fits a new model; `end_epoch` is called after each epoch, after memfit's callback."""
    import keras
    import numpy as np

    layers = [keras.layers.Dense(width, activation="relu") for _ in range(2)]
    model = keras.Sequential([keras.Input((width,)), *layers, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    random = np.random.default_rng(0)
    x = random.normal(size=(steps * BATCH_SIZE, width)).astype("float32")
    y = random.normal(size=(steps * BATCH_SIZE, 1)).astype("float32")
    told = keras.callbacks.LambdaCallback(on_epoch_end=end_epoch)
    model.fit(x, y, batch_size=BATCH_SIZE, epochs=epochs, verbose=0, callbacks=[told])


def _differences(times_s: list[float]) -> tuple[float, ...]:
    return tuple(later - earlier for earlier, later in itertools.pairwise(times_s))


def _status() -> dict[str, int]:
    """The sizes in `/proc/self/status`, in bytes."""
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    return {fields[0].rstrip(":"): int(fields[1]) * 1024 for fields in lines if fields[-1] == "kB"}


def _cpu_s(pid: int) -> float:
    """CPU time of all threads of a process so far, to the nanosecond unlike `/proc/PID/stat`."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(path.read_text().split()[0]) for path in threads) / 1e9


if __name__ == "__main__":
    main()
