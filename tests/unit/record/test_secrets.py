"""What is masked in a command before it is recorded, and what is not."""

import pytest

from memfit.record.secrets import mask_command


@pytest.mark.parametrize(
    ("given", "recorded"),
    [
        (["--password=hunter2"], ["--password=***"]),
        (["--password", "hunter2", "--epochs", "3"], ["--password", "***", "--epochs", "3"]),
        (["--db-password", "a b"], ["--db-password", "***"]),
        (["--hf_token", "abc"], ["--hf_token", "***"]),
        (["--api-key=abc=def"], ["--api-key=***"]),
        (["WANDB_API_KEY=abc"], ["WANDB_API_KEY=***"]),
        (["trainer.auth.token=abc"], ["trainer.auth.token=***"]),
        (["--aws-secret-access-key", "abc"], ["--aws-secret-access-key", "***"]),
        (["--url=postgres://me:hunter2@host/db"], ["--url=postgres://me:***@host/db"]),
        (["hf_" + "a" * 34], ["***"]),
        (["--login", "ghp_" + "A1" * 18], ["--login", "***"]),
        (["--header=Bearer sk-ant-" + "x" * 30], ["--header=Bearer ***"]),
        (["--token", "--epochs", "3"], ["--token", "--epochs", "3"]),
    ],
)
def test_secrets_are_masked(given, recorded):
    assert mask_command(["train.py", *given]) == ("train.py", *recorded)


@pytest.mark.parametrize(
    "argument",
    [
        "--num-tokens=512",
        "--tokenizer=bert",
        "--author=me",
        "--passes=3",
        "--keys",
        "data/tokens.npy",
    ],
)
def test_what_only_sounds_like_a_secret_stays(argument):
    assert mask_command(["train.py", argument, "x"]) == ("train.py", argument, "x")
