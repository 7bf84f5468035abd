"""`memfit explain`: what the code of a finding means and what to do about it."""

import argparse
import difflib
from collections.abc import Sequence

from memfit.errors import UsageError

HELP = "Explain a finding: what it means, its evidence, what helps."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of this command."""
    parser.add_argument(
        "code",
        metavar="CODE",
        nargs="?",
        help="such as held-tensors or MF201 (default: list all)",
    )


def run(args: argparse.Namespace) -> int:
    """Prints the explanation of a code, or the list of codes."""
    from rich.console import Console

    from memfit.lint import RULES
    from memfit.report.explanation import list_codes, render_codes, render_explanation, render_rule

    console = Console(highlight=False)
    if args.code is None:
        render_codes(console)
        return 0
    for rule in RULES:
        if rule.code == args.code.upper():
            render_rule(rule, console)
            return 0
    codes = list_codes()
    if args.code not in codes:
        raise UsageError(_unknown(args.code, codes))
    render_explanation(args.code, console)
    return 0


def _unknown(code: str, codes: Sequence[str]) -> str:
    """Suggests the nearest code, if one is near."""
    near = difflib.get_close_matches(code, codes, n=1)
    hint = f"Did you mean {near[0]}?" if near else "List them with: memfit explain"
    return f"No finding has the code {code!r}. {hint}"
