"""What is known and what is not, where no cause accounts for the growth."""

from memfit.diagnose.causes.case import Case
from memfit.diagnose.causes.finding import Finding
from memfit.record.evidence import Allocated
from memfit.units import format_size

_LEAST_SCALARS = 50


def find_constants(case: Case) -> list[Finding]:
    """Returns new Python numbers in eager operations, each of which TensorFlow keeps."""
    if case.growth is None:
        return []
    scalars = [one for one in case.recording.of(Allocated) if one.thing == "scalar"]
    if not scalars or max(one.count for one in scalars) < _LEAST_SCALARS:
        return []
    most = max(scalars, key=lambda one: one.count)
    return [
        Finding(
            code="eager-constants",
            message=(
                f"{most.count:,} new Python numbers entered eager operations at this line in "
                f"{most.window_s:.1f} s. TensorFlow caches each of them and never frees it, about "
                "0.7 KB a number."
            ),
            confidence="likely",
            fix=(
                "Create one tensor of all the numbers (tf.constant(numbers), or tf.random) and use "
                "its elements, or put the operation into a tf.function with a tensor argument."
            ),
            evidence={"numbers": most.count, "window_s": most.window_s},
            file=most.file,
            line=most.line,
            before=most.statement,
        )
    ]


def find_seeded(case: Case) -> list[Finding]:
    """Returns eager random operations under a global seed: TensorFlow keeps a kernel of each."""
    operations = case.made("seeded operation")
    if case.growth is None or not operations or operations[0].made < _LEAST_SCALARS:
        return []
    most = operations[0]
    return [
        Finding(
            code="eager-random",
            message=(
                f"{most.made:,} eager random operations ran at this line under a global seed. "
                "TensorFlow gives each its own seed and keeps a compiled kernel for every seed, "
                "about 40 KB each."
            ),
            confidence="likely",
            fix=(
                "Draw from one generator: generator = tf.random.Generator.from_seed(1) before the "
                "loop and generator.normal(...) in it; or draw inside a tf.function."
            ),
            evidence={"operations": most.made},
            file=most.file,
            line=most.line,
            before=most.statement,
        )
    ]


def find_allocations(case: Case) -> list[Finding]:
    """Returns the line that leaves the most behind, where only the trace of it is known."""
    if case.growth is None:
        return []
    windows = [one for one in case.recording.of(Allocated) if one.thing != "scalar"]
    if not windows:
        return []
    most = max(windows, key=lambda one: one.growth_bytes / max(one.window_s, 0.1))
    rate = most.growth_bytes / max(most.window_s, 0.1)
    if rate < 0.3 * case.growth.bytes_per_s:
        return []
    things = "tensors" if most.thing == "tensor" else "Python objects or arrays"
    return [
        Finding(
            code="held-tensors" if most.thing == "tensor" else "unexplained-growth",
            message=(
                f"{most.count:,} {things} ({format_size(most.growth_bytes)}) created at "
                f"this line within {most.window_s:.1f} s were still alive at the end; what keeps "
                "them was not found."
            ),
            confidence="likely",
            fix="Check what stores or captures the result of this line.",
            evidence={"growth_bytes": most.growth_bytes, "window_s": most.window_s},
            file=most.file,
            line=most.line,
            before=most.statement,
        )
    ]


def find_unexplained(case: Case) -> list[Finding]:
    """Returns what is known of growth that no cause accounts for; never a guess."""
    if case.growth is None:
        return []
    file, line = case.busiest_line()
    in_use_bytes = [allocator.in_use_bytes for _, allocator in case.malloc_samples()]
    parts = [f"Memory grew by {format_size(case.risen_bytes)}, but no cause was found."]
    if in_use_bytes:
        rise = in_use_bytes[-1] - in_use_bytes[0]
        parts.append(
            f"Memory in use by malloc rose by {format_size(rise)}: "
            + (
                "something still holds it."
                if rise >= case.risen_bytes / 2
                else "the growth is outside malloc."
            )
        )
    return [
        Finding(
            code="unexplained-growth",
            message=" ".join(parts),
            confidence="possible",
            fix=(
                ("" if line is None else "This line ran most of the time while memory grew. ")
                + "Run longer, or look with memray run --native; and please report it."
            ),
            evidence={"risen_bytes": case.risen_bytes},
            file=file,
            line=line,
        )
    ]
