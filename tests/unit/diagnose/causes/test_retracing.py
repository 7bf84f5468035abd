"""From functions that were traced again to a finding."""

import dataclasses

from builders import MB, trained
from msgspec import structs

from memfit.diagnose.diagnosis import diagnose
from memfit.record.evidence import Retraced

GROWING = trained([(500 + 20 * number) * MB for number in range(12)], epoch_s=10)
RETRACED = Retraced(
    t_s=110.0,
    since_t_s=20.0,
    name="train_step",
    file="train.py",
    line=8,
    traces_before=2,
    traces=203,
    functions=1,
    statement="loss = train_step(x, rate)",
    changed="rate: 201.0 (Python float), then 202.0 (Python float)",
    compiler="tf.function",
)


def findings(*retraced, recording=GROWING):
    return diagnose(dataclasses.replace(recording, evidence=retraced)).findings


def test_a_function_that_was_traced_again_is_named_with_two_of_its_arguments():
    (finding,) = findings(RETRACED)

    assert (finding.code, finding.file, finding.line) == ("retracing", "train.py", 8)
    assert "train_step was compiled 201 more times at this line, 203 in total" in finding.message
    assert "rate: 201.0 (Python float), then 202.0 (Python float)" in finding.message
    assert finding.before == "loss = train_step(x, rate)"


def test_functions_made_again_at_one_line_are_distinguished_from_one_traced_again():
    (finding,) = findings(structs.replace(RETRACED, functions=50, traces=50))

    assert "50 functions train_step were created and compiled at this line" in finding.message
    assert "before the loop" in finding.fix


def test_only_the_last_look_counts_and_the_most_traced_comes_first():
    old = structs.replace(RETRACED, t_s=50.0, name="old")
    less = structs.replace(RETRACED, name="less", traces=10, line=9)

    assert [one.evidence["function"] for one in findings(old, less, RETRACED)] == [
        "train_step",
        "less",
    ]


def test_steady_memory_has_no_finding():
    assert findings(RETRACED, recording=trained([500 * MB] * 12)) == ()
