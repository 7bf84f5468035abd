"""The cases of one backend: a line of JSON for each, then what proofs take. Run by `exact.py`."""

import json
import os
import sys
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
warnings.simplefilter("ignore")

from fit_cases import CASES, build, make_data  # noqa: E402

from exactness.all_cases import FAMILIES  # noqa: E402
from exactness.trial import Result, try_case  # noqa: E402
from memfit.fitting.levers.micro_batches import describe_split  # noqa: E402
from memfit.fitting.proof.proof import prove  # noqa: E402


def try_safely(case: Any) -> Result:
    """Returns how a case ended; one that raises is wrong."""
    try:
        return try_case(case)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is counted and shown
        traceback.print_exc()
        return Result("wrong", f"{type(error).__name__}: {error}")


def measure_proof(name: str, batch_size: int, batchnorm: str | None) -> dict[str, Any]:
    """Returns what a proof of a benchmark's model takes, and a step of the same rows after it."""
    model = build(name)
    x, y = make_data(name, batch_size)
    begun_s, worked_s = time.perf_counter(), time.process_time()
    verdict = prove(model, (x, y, None), describe_split(model, batchnorm))
    proof_s, proof_cpu_s = time.perf_counter() - begun_s, time.process_time() - worked_s
    worked_s = time.process_time()
    model.fit(x, y, batch_size=batch_size, steps_per_epoch=1, verbose=0)
    return {
        "model": name,
        "outcome": verdict.outcome.value,
        "rows": verdict.num_rows,
        "proof_s": proof_s,
        "proof_cpu_s": proof_cpu_s,
        "first_step_cpu_s": time.process_time() - worked_s,
    }


def main() -> None:
    """Tries all, or the families that are named; `proof` stands for what it costs."""
    wanted = sys.argv[1:] or [*FAMILIES, "proof"]
    for family in (one for one in FAMILIES if one in wanted):
        for case in FAMILIES[family]():
            result = try_safely(case)
            line = {
                "family": family,
                "name": case.name,
                "culprit": case.culprit,
                "outcome": result.outcome,
                "why": result.why,
            }
            print(json.dumps(line), flush=True)
    for case in CASES:
        if "proof" in wanted and os.environ["KERAS_BACKEND"] in case.backends:
            print(json.dumps(measure_proof(case.name, case.batch_size, case.batchnorm)), flush=True)


if __name__ == "__main__":
    main()
