"""One measurement of `fit.py`, in a process of its own: `fit_training.py JSON`, see `Wanted`.

Prints one line of JSON: sizes in bytes, times in seconds. `KERAS_BACKEND` names the backend.
Linux only.
"""

import gc
import json
import re
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fit_cases import build, find_case, make_data

EPOCHS = 3
SETTLED_S = 0.5
# Threads that start later take their stacks out of the limit, though not out of memory.
STACKS_BYTES = 128_000_000
_ACTIVATIONS = re.compile(r"saves about (\S+ \S+) of (\S+ \S+) of activations")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be measured.

    Attributes:
        way: `"steps"`: single steps with the batch at hand, as the framework's own tensors;
            `"fit"`: Keras's `fit` of arrays; `"within"`: memfit's `fit` of arrays.
        case: The name of the model.
        batch_size: Samples in a batch.
        size: Samples in a micro-batch; `None` for whole batches.
        saved_share: The share of the activations that recomputation shall save; 0 for none.
        budget_bytes: What memfit's `fit` may take.
        steps: Timed steps.
        is_limited: Whether this process may not get more memory than the budget allows.
    """

    way: str
    case: str
    batch_size: int
    size: int | None = None
    saved_share: float = 0.0
    budget_bytes: int = 0
    steps: int = 0
    is_limited: bool = False


class HighWater:
    """The most memory since this was made, whoever sets the kernel's mark back meanwhile."""

    def __init__(self) -> None:
        self._highest_bytes = 0
        Path("/proc/self/clear_refs").write_text("5")  # proc(5): resets the peak

    def read(self) -> int:
        """Returns the most so far."""
        self._highest_bytes = max(self._highest_bytes, read_status("VmHWM"))
        return self._highest_bytes

    def follow(self, kind: Any) -> None:
        """Looks each time before a `kind`, a class of memfit, sets the mark back."""
        enter = kind.__enter__

        def look_and_enter(one: Any) -> Any:
            self.read()
            return enter(one)

        kind.__enter__ = look_and_enter


def main() -> None:
    """Measures and prints."""
    import keras

    wanted = Wanted(**json.loads(sys.argv[1]))
    keras.utils.set_random_seed(1)
    ways: dict[str, Callable[[Wanted, Any], dict[str, Any]]] = {
        "steps": run_steps,
        "fit": run_fit,
        "within": run_within,
    }
    model = build(wanted.case)
    print(json.dumps(ways[wanted.way](wanted, model)))


def run_steps(wanted: Wanted, model: Any) -> dict[str, Any]:
    """Runs steps; the batch is there before, so that the peak is what the steps add."""
    import keras

    text = change(wanted, model)
    x, y = (keras.ops.convert_to_tensor(one) for one in make_data(wanted.case, wanted.batch_size))
    settle(x, y)
    idle_bytes = read_status("VmRSS")
    highest = HighWater()
    model.train_on_batch(x, y)  # compiles
    times_s = []
    for _ in range(wanted.steps):
        begun_s = time.perf_counter()
        model.train_on_batch(x, y)
        times_s.append(time.perf_counter() - begun_s)
    added_bytes = highest.read() - idle_bytes
    return {"added_bytes": added_bytes, "times_s": times_s, "text": text}


def settle(*tensors: Any) -> None:
    """Waits until making tensors is over: JAX goes on meanwhile, TensorFlow frees a copy later."""
    import keras

    for tensor in tensors:
        keras.ops.convert_to_numpy(tensor[:1])
    gc.collect()
    time.sleep(SETTLED_S)


def change(wanted: Wanted, model: Any) -> str:
    """Makes the model run in micro-batches or recompute; returns memfit's words for it."""
    from memfit.fitting.levers.micro_batches import split
    from memfit.fitting.levers.recompute import recompute
    from memfit.units import parse_size

    if wanted.size is not None:
        return str(split(model, wanted.size, batchnorm=find_case(wanted.case).batchnorm))
    if not wanted.saved_share:
        return ""
    all_blocks = recompute(model, batch_size=wanted.batch_size)
    all_blocks.undo()
    found = _ACTIVATIONS.search(str(all_blocks))
    if found is None:
        raise ValueError(f"memfit told no sizes: {all_blocks}")
    most_bytes, whole_bytes = (parse_size(text) for text in found.groups())
    saved_bytes = min(int(wanted.saved_share * whole_bytes), int(0.99 * most_bytes))
    return str(recompute(model, saved_bytes, batch_size=wanted.batch_size))


def run_fit(wanted: Wanted, model: Any) -> dict[str, Any]:
    """Fits arrays of one batch as Keras does."""
    change(wanted, model)
    x, y = make_data(wanted.case, wanted.batch_size)
    idle_bytes = read_status("VmRSS")
    highest = HighWater()
    model.fit(x, y, batch_size=wanted.batch_size, epochs=EPOCHS, verbose=0)
    return {"idle_bytes": idle_bytes, "peak_bytes": highest.read()}


def run_within(wanted: Wanted, model: Any) -> dict[str, Any]:
    """Fits arrays of one batch within a budget, and tells what memfit tried and chose."""
    from memfit.errors import BudgetError
    from memfit.fitting import held_fit, trial_steps
    from memfit.fitting.fit import fit
    from memfit.measure.peak import Peak

    x, y = make_data(wanted.case, wanted.batch_size)
    trials, plans = record(held_fit, trial_steps.Prober)
    if wanted.is_limited:
        limit_growth(wanted.budget_bytes)
    idle_bytes = read_status("VmRSS")
    highest = HighWater()
    highest.follow(Peak)
    begun_s = time.perf_counter()
    refused = None
    try:
        fit(
            model,
            x,
            y,
            batch_size=wanted.batch_size,
            epochs=EPOCHS,
            verbose=0,
            budget=f"{wanted.budget_bytes}B",
            batchnorm=find_case(wanted.case).batchnorm,
        )
    except BudgetError as error:
        refused = str(error)
    plan = plans[-1] if plans else None
    return {
        "idle_bytes": idle_bytes,
        "peak_bytes": highest.read(),
        "training_peak_bytes": read_status("VmHWM"),  # set back by memfit before it trains
        "size": None if plan is None else plan.size or plan.batch_size,
        "plan": None if plan is None else str(plan),
        "trials": [(one.size, one.peak_bytes, one.failed) for one in trials],
        "refused": refused,
        "took_s": time.perf_counter() - begun_s,
    }


def record(held_fit: Any, prober: Any) -> tuple[list[Any], list[Any]]:
    """Returns two lists that will hold memfit's trials and its plan."""
    trials: list[Any] = []
    plans: list[Any] = []
    choose, try_step = held_fit.choose, prober.try_step

    def choose_and_tell(*args: Any) -> Any:
        plans.append(choose(*args))
        return plans[-1]

    def try_and_tell(*args: Any) -> Any:
        trials.append(try_step(*args))
        return trials[-1]

    held_fit.choose, prober.try_step = choose_and_tell, try_and_tell
    return trials, plans


def limit_growth(budget_bytes: int) -> None:
    """Lets this process grow by what the budget leaves, as there is no control group."""
    left_bytes = budget_bytes - read_status("VmRSS")
    soft_bytes = read_status("VmData") + left_bytes + STACKS_BYTES
    _, hard_bytes = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (soft_bytes, hard_bytes))


def read_status(name: str) -> int:
    """Returns one size of this process as Linux tells it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    main()
