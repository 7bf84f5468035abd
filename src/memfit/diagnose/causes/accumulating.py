"""Things that are made in a loop and stay, though no name in the script keeps them."""

from collections.abc import Sequence
from dataclasses import dataclass

from memfit.diagnose.causes.case import Case, Rise, is_continuing
from memfit.diagnose.causes.finding import Finding
from memfit.record.evidence import Look, Made

_ISOLATE = (
    "Put the body of the loop into with memfit.session(): it frees each model and what TensorFlow "
    "keeps of it. Or run each round in its own process: memfit.isolated(function)."
)
# There is no loop in the user's code, and what is in `build(hp)` is over before the training.
_ISOLATE_TRIAL = (
    "With KerasTuner, put with memfit.session(): around the trial, not into the function that "
    "builds the model: subclass the tuner and override run_trial, as docs/search.md shows."
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of object that accumulates."""

    code: str
    things: str
    keeper: str
    fix: str
    count: str | None = None


# By what `Made` calls them; `count` is the number among the looks that has to rise with them.
_KINDS = {
    "figure": _Kind(
        "accumulating-figures",
        "figures",
        "pyplot's registry keeps every figure until it is closed",
        "Close each one after saving it: plt.close(figure)",
        "figures",
    ),
    "writer": _Kind(
        "accumulating-writers",
        "summary writers",
        "each has its own open file and queue",
        "Create one writer before the loop, and close() it at the end.",
    ),
    "iterator": _Kind(
        "accumulating-iterators",
        "iterators of datasets",
        "each keeps its buffers and threads",
        "Drop each iterator when its pass is over, or iterate over the dataset in a for loop.",
    ),
    "thread": _Kind(
        "accumulating-threads",
        "threads",
        "a thread keeps what its function holds until it ends",
        "Join each thread, or use one pool for the whole run and shut it down.",
        "threads",
    ),
    "dataset": _Kind(
        "accumulating-datasets",
        "datasets",
        "each keeps the tensors it was built from",
        "Build the dataset once, before the loop.",
    ),
    "optimizer": _Kind(
        "accumulating-optimizers",
        "optimizers",
        "each keeps its moments for every weight",
        "Create the optimizer once, before the loop.",
    ),
    "model": _Kind(
        "accumulating-models",
        "models",
        "each keeps its weights and its compiled functions",
        _ISOLATE,
    ),
    "function": _Kind(
        "accumulating-functions",
        "compiled functions",
        "each keeps every compiled version",
        "Create the function once, before the loop, and pass what changes as a tensor.",
    ),
}
_LEAST_MORE = 3
# Functions that Keras makes for itself in a script with fit, validation, evaluate and predict.
_OF_KERAS = 4
# These run out even where they take little memory.
_RESOURCES = ("writer", "figure", "thread", "iterator")
# Things that come and go have a few alive at any time.
_LEAST_ALIVE_SHARE = 0.3


def find_registry(case: Case) -> list[Finding]:
    """Returns what TensorFlow's gradient registry keeps: the train graph of every model."""
    rise = case.rise("gradient_registry")
    if case.growth is None or rise is None or not is_continuing(rise):
        return []
    models = case.made("model", "compilation")
    made = models[0] if models else None
    if made is not None:
        rounds = made.made - made.made_before
        return [_registry_finding("accumulating-models", rise, made, f"{rounds} models")]
    functions = case.made("function")
    if functions and rise.more > _OF_KERAS:
        first = functions[0]
        what = f"{first.made - first.made_before} functions"
        return [_registry_finding("accumulating-functions", rise, first, what)]
    return []  # one function traced again: reported as retracing


def _registry_finding(code: str, rise: Rise, made: Made, what: str) -> Finding:
    verb = "compiled" if made.thing == "compilation" else "created"
    return Finding(
        code=code,
        message=(
            f"{what} were {verb} at this line, and TensorFlow keeps the train graph of each: its "
            f"gradient registry grew from {rise.before:,} to {rise.now:,} entries, each of which "
            "holds a graph. Neither clear_session() nor gc.collect() frees them."
        ),
        confidence="certain",
        fix=_isolate(made)
        if code == "accumulating-models"
        else "Create the function once, before the loop, and pass what changes as a tensor.",
        evidence={
            "registry_before": rise.before,
            "registry_now": rise.now,
            "made": made.made,
            "alive": made.alive,
        },
        file=made.file,
        line=made.line,
        before=made.statement,
        notes=(
            "Known upstream: keras#20552, tensorflow#97697. It is fixed in TensorFlow after 2.21.",
        ),
    )


def _isolate(made: Made) -> str:
    return _ISOLATE_TRIAL if made.by_tuner else _ISOLATE


def find_pinned_data(case: Case) -> list[Finding]:
    """Returns Python generators and PyDatasets that TensorFlow's default graph keeps."""
    rise = case.rise("py_functions")
    if case.growth is None or rise is None or not is_continuing(rise):
        return []
    made = case.made("dataset")
    file, line = (made[0].file, made[0].line) if made else case.busiest_line()
    return [
        Finding(
            code="accumulating-datasets",
            message=(
                f"Python data was passed to TensorFlow again {rise.more} times, and its default "
                "graph keeps each: a PyDataset or generator passed to fit repeatedly, or a rebuilt "
                f"pipeline with py_function ({rise.before:,} entries at first, {rise.now:,} now)."
            ),
            confidence="certain",
            fix=(
                "Build the dataset once and pass the same object to every fit. If a loop must "
                "rebuild it, keras.utils.clear_session() between rounds frees the old ones."
            ),
            evidence={"entries_before": rise.before, "entries_now": rise.now},
            file=file,
            line=line,
            before=made[0].statement if made else None,
            notes=("Known upstream: keras#16947. It is fixed in TensorFlow after 2.21.",),
        )
    ]


def find_accumulating(case: Case) -> list[Finding]:
    """Returns things of one kind, made at one line, more and more of which are alive."""
    findings = []
    for made in case.made(*(_KINDS if case.growth is not None else _RESOURCES)):
        kind = _KINDS[made.thing]
        rise = case.alive_rise(made.thing, made.file, made.line)
        is_confirmed = kind.count is None or is_continuing(case.rise(kind.count), _LEAST_MORE)
        is_kept = made.alive >= _LEAST_ALIVE_SHARE * made.made
        if is_continuing(rise, _LEAST_MORE) and is_kept and is_confirmed:
            findings.append(_finding(kind, made, is_problem=case.growth is not None))
    return findings


def _finding(kind: _Kind, made: Made, *, is_problem: bool) -> Finding:
    so_far = "" if is_problem else " Memory does not grow because of it so far."
    return Finding(
        code=kind.code,
        message=(
            f"{made.made:,} {kind.things} were created at this line and {made.alive:,} of them are "
            f"still alive: {kind.keeper}.{so_far}"
        ),
        confidence="likely",
        fix=_isolate(made) if made.thing == "model" else kind.fix,
        evidence={"made": made.made, "alive": made.alive, "thing": made.thing},
        file=made.file,
        line=made.line,
        before=made.statement,
        is_problem=is_problem,
    )


def find_files(case: Case) -> list[Finding]:
    """Returns files that stay open, where nothing else tells which."""
    rise = case.rise("files")
    if case.growth is None or rise is None or not is_continuing(rise):
        return []
    file, line = case.busiest_line()
    return [
        Finding(
            code="accumulating-files",
            message=f"Open files rose from {rise.before:,} to {rise.now:,} while memory grew.",
            confidence="possible",
            fix="Open files in a with block, or close() each.",
            evidence={"files_before": rise.before, "files_now": rise.now},
            file=file,
            line=line,
        )
    ]


def find_long_tape(case: Case) -> list[Finding]:
    """Returns a gradient tape that goes on recording through a whole loop."""
    if case.growth is None or not _is_long(case):
        return []
    tapes = [one for one in case.newest(Made, lambda one: (one.thing, one.line)) if one.alive]
    tape = next((one for one in tapes if one.thing == "tape"), None)
    return [
        Finding(
            code="held-graph",
            message=(
                "A GradientTape has been recording through many steps, and keeps every tensor of "
                "each of them until it is closed."
            ),
            confidence="certain",
            fix="Open the tape inside the loop, around one step, and compute its gradient there.",
            holder="the tape",
            file=tape.file if tape else None,
            line=tape.line if tape else None,
            before=tape.statement if tape else None,
        )
    ]


def _is_long(case: Case) -> bool:
    looks: Sequence[Look] = [one for one in case.recording.of(Look) if one.level == "counts"]
    return sum(one.numbers.get("long_tapes", 0) > 0 for one in looks[-6:]) >= 2
