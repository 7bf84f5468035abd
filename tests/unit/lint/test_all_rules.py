"""Every rule sees what it is for, at its line, and passes what only looks like it."""

from collections import Counter

from memfit.lint import RULES, lint_source, rule_for

# What a running training shows (issue 3); folklore and None are what it does not show.
CAUSES = {
    *("retracing", "accumulating-models", "accumulating-functions", "accumulating-optimizers"),
    *("accumulating-writers", "accumulating-figures", "held-tensors", "held-graph"),
    *("buffer-too-large", "data-in-memory", "uncollected-garbage", "stateful-layer"),
    *("folklore", None),
}


def test_lint_names_the_marked_lines_and_no_others(case):
    seen = {(hint.line, hint.code) for hint in lint_source(case.code)}

    assert seen == case.expected


def test_every_rule_is_seen_twice_and_passed_twice(cases):
    seen = Counter(code for case in cases if case.expected for code in case.rules)
    passed = Counter(code for case in cases if not case.expected for code in case.rules)
    codes = {rule.code for rule in RULES} - {"MF001"}

    assert {code for code in codes if seen[code] < 2} == set()
    assert {code for code in codes if passed[code] < 2} == set()
    assert set(seen) | set(passed) == codes


def test_a_case_marks_the_rules_that_its_title_names(cases):
    marked = [case for case in cases if case.expected]

    assert [
        case.title for case in marked if {code for _, code in case.expected} != set(case.rules)
    ] == []


def test_codes_and_names_are_unique_and_in_order():
    codes = [rule.code for rule in RULES]

    assert codes == sorted(set(codes))
    assert len({rule.name for rule in RULES}) == len(RULES)


def test_every_rule_has_a_cause_that_the_diagnosis_knows():
    assert {rule.cause for rule in RULES} == CAUSES


def test_a_cause_is_answered_with_the_codes_that_would_have_seen_it():
    assert rule_for("held-graph") == ("MF202", "MF401", "MF402")
    assert rule_for("allocator-retains") == ()


def test_messages_are_one_line_without_a_full_stop_and_fixes_are_there(cases):
    hints = [hint for case in cases for hint in lint_source(case.code)]

    assert len(hints) > 80
    for hint in hints:
        assert "\n" not in hint.message + hint.fix
        assert not hint.message.endswith(".")
        assert hint.fix
