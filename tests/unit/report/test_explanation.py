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


def test_its_examples_are_called_before_and_after(capsys):
    main(["explain", "buffer-too-large"])

    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    batched, shuffled = (
        next(at for at, line in enumerate(lines) if line.endswith(end))
        for end in (".shuffle(10_000)", ".batch(256)")
    )
    assert lines.index("before:") < batched < lines.index("after:") < shuffled


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


def test_a_code_of_lint_is_reported_with_its_cause(capsys):
    assert main(["explain", "mf203"]) == 0

    told = " ".join(capsys.readouterr().out.split())
    assert told == (
        "MF203 outputs-kept, a rule of memfit lint Outputs of a model put into a list by a hook "
        "stay in memory for every epoch or batch. memfit run calls it held-tensors. More: memfit "
        "explain held-tensors"
    )


def test_a_code_of_lint_without_a_cause_is_still_reported(capsys):
    assert main(["explain", "MF502"]) == 0

    told = capsys.readouterr().out
    assert "gc.collect" in told
    assert "memfit explain" not in told


def test_without_a_command_the_help_is_shown_and_the_use_is_wrong(capsys):
    assert main([]) == 2

    told = capsys.readouterr().err
    assert "usage: memfit" in told
    assert "Start with: memfit run train.py" in told
