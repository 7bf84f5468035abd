"""`memfit explain` says what a code means, and helps with codes that it does not know."""

from memfit.cli import main
from memfit.report.explanation import list_codes


def test_a_code_is_explained_with_its_example_and_without_links(capsys):
    assert main(["explain", "held-tensors"]) == 0

    told = capsys.readouterr().out
    assert "What happens." in told
    assert "self.outputs.append(self.model.predict(self.x))" in told
    assert "MF203" in told
    assert ".md" not in told


def test_without_a_code_all_are_listed_with_a_sentence(capsys):
    assert main(["explain"]) == 0

    told = capsys.readouterr().out
    assert all(code in told for code in list_codes())
    assert "Models are built, compiled and trained in a loop." in told


def test_a_code_that_is_nearly_right_is_corrected(capsys):
    assert main(["explain", "held-tensor"]) == 2

    assert "Did you mean held-tensors?" in capsys.readouterr().err


def test_a_code_like_no_other_is_answered_with_the_list(capsys):
    assert main(["explain", "zzz"]) == 2

    assert "memfit explain" in capsys.readouterr().err


def test_a_code_of_lint_leads_to_its_cause(capsys):
    assert main(["explain", "mf203"]) == 2

    assert "memfit explain held-tensors" in capsys.readouterr().err


def test_a_code_of_lint_without_a_cause_is_still_told(capsys):
    assert main(["explain", "MF502"]) == 2

    assert "gc.collect" in capsys.readouterr().err
