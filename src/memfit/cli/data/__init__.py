"""`memfit data`: what is in some data, whether it is intact, how fast it streams here."""

import argparse
import importlib

HELP = "Inspect data, check that it is intact, or measure how fast it streams."
ACTIONS = ("info", "check", "bench")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds a parser for each action."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    for name in ACTIONS:
        module = importlib.import_module(f"memfit.cli.data.{name}")
        action = actions.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(action)
        action.set_defaults(run_action=module.run)


def run(args: argparse.Namespace) -> int:
    """Returns what the action returns."""
    return int(args.run_action(args))
