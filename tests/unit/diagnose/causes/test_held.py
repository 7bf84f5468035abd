"""From what was seen to grow to a finding."""

import dataclasses

from builders import MB, trained
from msgspec import structs

from memfit.diagnose.diagnosis import diagnose
from memfit.record.evidence import Holding

GROWING = trained([(500 + 20 * number) * MB for number in range(12)], epoch_s=10)
HOLDING = Holding(
    t_s=110.0,
    since_t_s=20.0,
    owner="outputs of PredictionLogger",
    container="list",
    length_before=2,
    length=11,
    growth_bytes=170 * MB,
    item_kind="array",
    example="float32 (20000, 100)",
    file="train.py",
    line=14,
    statement="self.outputs.append(self.model.predict(self.x))",
)


def findings(*holdings, recording=GROWING):
    return diagnose(dataclasses.replace(recording, evidence=holdings)).findings


def changed(**changes):
    return structs.replace(HOLDING, **changes)


def test_a_list_that_explains_the_growth_is_named_with_file_and_line():
    (finding,) = findings(HOLDING)

    assert finding.code == "held-tensors"
    assert finding.confidence == "certain"
    assert (finding.file, finding.line) == ("train.py", 14)
    assert finding.message == (
        "outputs of PredictionLogger keeps arrays or tensors: a list that grew from 2 to 11 "
        "(float32 (20000, 100)), 170 MB or 94% of the growth."
    )
    assert finding.before == "self.outputs.append(self.model.predict(self.x))"


def test_of_a_loss_that_was_seen_to_be_many_numbers_none_is_promised():
    keeping = changed(item_kind="tensor", statement="self.losses.append(loss)")

    after = [
        finding.after
        for example in ("float32 ()", "float32 (512,)")
        for finding in findings(structs.replace(keeping, example=example))
    ]

    assert after == ["self.losses.append(float(loss))", None]


def test_what_keeps_little_of_the_growth_is_not_named():
    assert [one.code for one in findings(changed(growth_bytes=5 * MB))] == ["unexplained-growth"]


def test_several_causes_are_ordered_by_their_share():
    small = changed(owner="kept", growth_bytes=40 * MB)

    found = findings(small, changed(growth_bytes=120 * MB))

    assert [finding.evidence["growth_bytes"] for finding in found] == [120 * MB, 40 * MB]
    assert [finding.confidence for finding in found] == ["certain", "likely"]


def test_only_the_last_look_counts():
    assert findings(changed(t_s=60.0, owner="gone"), HOLDING)[0].holder == HOLDING.owner
    assert len(findings(changed(t_s=60.0, owner="gone"), HOLDING)) == 1


def test_steady_memory_has_no_findings_whatever_grew():
    steady = trained([500 * MB] * 12)

    assert findings(HOLDING, recording=steady) == ()


def test_kinds_have_their_own_codes():
    kinds = ("graph", "tape", "model", "history", "function", "dataset", "figure", "thread")

    codes = [findings(changed(item_kind=kind, growth_bytes=0))[0].code for kind in kinds]

    assert codes == [
        "held-graph",
        "held-graph",
        "accumulating-models",
        "accumulating-models",
        "accumulating-functions",
        "accumulating-datasets",
        "accumulating-figures",
        "accumulating-threads",
    ]


def test_an_array_that_is_replaced_by_a_larger_one_is_reported_in_bytes():
    holding = changed(container="array", length_before=10 * MB, length=180 * MB)

    (finding,) = findings(holding)

    assert "is an array that grew from 10.0 MB to 180 MB" in finding.message


def test_a_kind_that_this_version_does_not_know_is_passed_over():
    found = findings(changed(item_kind="from a later version"))

    assert [one.code for one in found] == ["unexplained-growth"]
