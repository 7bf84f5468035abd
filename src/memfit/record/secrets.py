"""Passwords, tokens and keys in the arguments of a script, masked before they are recorded.

What is masked is listed in docs/trust.md: an argument that is named like a secret, a value that
looks like the token of a known service, and the password in an address.
"""

import re
from collections.abc import Iterator, Sequence

MASK = "***"
# What a secret is called, in an argument or a variable: `--db-password`, `HF_TOKEN=`, `api_key=`.
_NAMES = (
    r"pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|auth(?:orization)?|bearer"
    r"|(?:api|access|private|secret|signing|encryption|account)[-_]?key"
)
_NAMED = rf"(?:[\w.-]*[-_.])?(?:{_NAMES})(?:[-_.][\w.-]*)?"
_ASSIGNED = re.compile(rf"(-{{0,2}}{_NAMED})([=:])(.+)", re.IGNORECASE | re.DOTALL)
_OPTION = re.compile(rf"--?{_NAMED}", re.IGNORECASE)
_TOKENS = re.compile(
    r"\b(?:sk|pk|rk)[-_](?:[\w]+[-_])?[\w-]{16,}"  # OpenAI, Stripe, Anthropic
    r"|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}|\bglpat-[\w-]{16,}"  # GitHub, GitLab
    r"|\bhf_\w{20,}|\bxox[abeoprs]-[\w-]{10,}"  # Hugging Face, Slack
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[\w-]{30,}"  # Amazon, Google
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"  # JSON web tokens
)
_ADDRESS = re.compile(r"(\b[a-z][a-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(@)", re.IGNORECASE)


def mask_command(command: Sequence[str]) -> tuple[str, ...]:
    """Returns the arguments of a script with each secret in them replaced by `***`.

    Example:
    >>> mask_command(["train.py", "--password=abc", "--token", "abc", "--epochs=3"])
    ('train.py', '--password=***', '--token', '***', '--epochs=3')
    """
    return tuple(_mask_each(command))


def _mask_each(command: Sequence[str]) -> Iterator[str]:
    is_value = False
    for argument in command:
        if is_value and not argument.startswith("--"):
            yield MASK
            is_value = False
            continue
        is_value = _OPTION.fullmatch(argument) is not None
        yield _mask(argument)


def _mask(argument: str) -> str:
    assigned = _ASSIGNED.fullmatch(argument)
    if assigned is not None:
        return f"{assigned[1]}{assigned[2]}{MASK}"
    return _ADDRESS.sub(rf"\1{MASK}\2", _TOKENS.sub(MASK, argument))
