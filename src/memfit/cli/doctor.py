"""`memfit doctor`: memory limits and settings of this machine."""

import argparse
import sys

HELP = "Check memory limits, devices and settings of this machine."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of this command."""
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def run(args: argparse.Namespace) -> int:
    """Prints the limits, devices, allocator, versions and risky settings."""
    from rich.console import Console

    from memfit.diagnose.machine_advice import advise
    from memfit.measure.machine import read_machine
    from memfit.report.machine import render_machine, render_machine_json

    with Console(stderr=True).status("Asking the installed backends for their devices"):
        machine = read_machine()
    advice = advise(machine)
    if args.json:
        sys.stdout.write(render_machine_json(machine, advice))
    else:
        render_machine(machine, advice, Console(highlight=False))
    return 0
