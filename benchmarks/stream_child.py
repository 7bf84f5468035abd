"""One measurement of `stream.py`: told what by JSON, prints figures as JSON.

Each `measure_...` below is one kind; `what` names it. See `stream_process.py` for the rest.
"""

import contextlib
import importlib
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from stream_data import FEW_ROWS, WIDTH, WRITERS
from stream_peers import BATCH, READERS
from stream_sources import measure_least, measure_peer_resume, measure_resume, say_idle

# Steps of `fit` that are not timed: the first are slower.
_FIRST_STEPS = 30
# With fewer batches their variance tells nothing.
_LEAST_BATCHES = 30


def measure_write(folder: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """Writes data."""
    began = time.perf_counter()
    WRITERS[wanted["data"]](folder, wanted["rows"])
    return {"took_s": time.perf_counter() - began}


# ---- iterating


def measure_read(folder: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """Takes batches for some seconds: the rate, CPU time and how well rows are mixed."""
    reader = READERS[wanted["case"]]
    import_all(reader.package, is_with_keras=reader.backend is not None)
    say_idle()
    num_rows = min(wanted["rows"], FEW_ROWS) if "mds" in reader.data else wanted["rows"]
    epochs = reader.read(folder, wanted["budget_bytes"])
    means: list[float] = []
    found = [take(next(epochs), wanted["seconds"], means)]
    # The first pass of a slow loader took all its time; of others the next ones count.
    until = time.perf_counter() + wanted["seconds"]
    while (
        wanted["is_warm"]
        and found[0]["is_whole"]
        and (len(found) == 1 or time.perf_counter() < until)
    ):
        found.append(take(next(epochs), wanted["seconds"]))
    best = max(found[1:] or found, key=lambda one: one["rows_per_s"])
    middle, variance = (num_rows - 1) / 2, num_rows**2 / 12
    whole = np.array(means[:-1] if found[0]["is_whole"] else means)
    deff = float(np.mean((whole - middle) ** 2) / (variance / BATCH))
    return {**best, "deff": deff if len(whole) >= _LEAST_BATCHES else None}


def take(batches: Iterator[Any], seconds: float, means: list[float] | None = None) -> Any:
    """Takes batches of an epoch until it ends, or time is up; then the first does not count."""
    first_rows = num_rows = 0
    is_whole = True
    y = None
    began, cpu = time.perf_counter(), read_cpu()
    first = (began, cpu)
    for _, y in batches:
        num_rows += len(y)
        if means is not None:
            means.append(float(np.asarray(y).mean(dtype=np.float64)))
        if first_rows == 0:
            first, first_rows = (time.perf_counter(), read_cpu()), len(y)
        elif time.perf_counter() - began > seconds:
            is_whole = False
            break
    np.asarray(y)  # JAX is done now, too
    wall_s, cpu_s = time.perf_counter() - began, read_cpu() - cpu
    if not is_whole:
        num_rows -= first_rows
        wall_s, cpu_s = wall_s - (first[0] - began), cpu_s - (first[1] - cpu)
    return {
        "rows_per_s": num_rows / wall_s,
        "cpu_s": cpu_s / num_rows * 1e6,
        "is_whole": is_whole,
    }


def read_cpu() -> float:
    """CPU seconds of this process and of those below it, also if they have ended."""
    ended = os.times()
    below = ended.children_user + ended.children_system
    for one in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            times = one.cpu_times()
            below += times.user + times.system
    return time.process_time() + below


def import_all(package: str, *, is_with_keras: bool) -> None:
    """Imports what a case needs, and lets frameworks set themselves up."""
    if package == "streaming":
        from stream_peers import import_streaming

        import_streaming()
    else:
        importlib.import_module(package)
    if is_with_keras:
        import keras

        keras.ops.convert_to_numpy(keras.ops.ones(3) + 1)


# ---- fit


def measure_fit(folder: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """Trains the dense net for some seconds."""
    import keras

    import memfit

    keras.utils.set_random_seed(0)
    layers = [keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((WIDTH,)), *layers])
    model.compile("adam", "mse")
    small = np.zeros((4 * BATCH, WIDTH), "float32")
    model.fit(small, small[:, 0], batch_size=BATCH, verbose=0)
    say_idle()
    if wanted["case"] == "memfit":
        budget = f"{wanted['budget_bytes']}B"
        rows = memfit.stream(folder / "store", batch_size=BATCH, shuffle=True, budget=budget)
        data = (rows,)
    elif wanted["case"] == "constant":
        batch = (small[:BATCH], small[:BATCH, 0])
        data = ((batch for _ in itertools.count()),)
    else:
        data = (np.load(folder / "x.npy"), np.load(folder / "y.npy"))

    class Clock(keras.callbacks.Callback):  # type: ignore[misc]  # Keras ships no types
        steps = 0
        times_s = (0.0, 0.0)

        # The hook at the end of a step would wait for the step.
        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            self.steps += 1
            now = time.perf_counter()
            if self.steps == _FIRST_STEPS:
                self.times_s = (now, now)
            elif self.steps > _FIRST_STEPS:
                self.times_s = (self.times_s[0], now)
                if now - self.times_s[0] > wanted["seconds"]:
                    self.model.stop_training = True

    clock = Clock()
    sizes = {
        "memfit": {},
        "constant": {"steps_per_epoch": wanted["rows"] // BATCH},
        "arrays": {"batch_size": BATCH},
    }[wanted["case"]]
    model.fit(*data, **sizes, epochs=100, verbose=0, callbacks=[clock])
    took_s = clock.times_s[1] - clock.times_s[0]
    return {"rows_per_s": (clock.steps - _FIRST_STEPS) * BATCH / took_s, "steps": clock.steps}


# ---- pictures


def measure_pictures(folder: Path, wanted: dict[str, Any]) -> dict[str, Any]:
    """Reads all pictures twice: from the call that finds them to the last batch, and again."""
    import stream_pictures

    opens = {
        "memfit": stream_pictures.open_memfit,
        "keras": stream_pictures.open_keras,
        "torch": stream_pictures.open_torch,
    }
    packages = {"memfit": "PIL.Image", "keras": "tensorflow", "torch": "torch"}
    import_all(packages[wanted["case"]], is_with_keras=wanted["case"] == "keras")
    say_idle()
    os.environ["XDG_CACHE_HOME"] = wanted["cache"]
    began, cpu = time.perf_counter(), read_cpu()
    run = opens[wanted["case"]](folder / "pictures")
    num_pictures = sum(len(y) for _, y in run())
    first_s, first_cpu_s = time.perf_counter() - began, read_cpu() - cpu
    began = time.perf_counter()
    num_pictures = sum(len(y) for _, y in run())
    return {
        "pictures_per_s": num_pictures / first_s,
        "again_per_s": num_pictures / (time.perf_counter() - began),
        "cpu_s": first_cpu_s / num_pictures,
    }


def main() -> None:
    """Measures what is asked for."""
    kinds: dict[str, Callable[[Path, dict[str, Any]], dict[str, Any]]] = {
        "write": measure_write,
        "read": measure_read,
        "fit": measure_fit,
        "pictures": measure_pictures,
        "least": measure_least,
        "resume": measure_resume,
        "peer resume": measure_peer_resume,
    }
    wanted = json.loads(sys.argv[1])
    print(json.dumps(kinds[wanted["what"]](Path(wanted["folder"]), wanted)), flush=True)


if __name__ == "__main__":
    main()
