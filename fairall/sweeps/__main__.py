"""`python -m fairall.sweeps`: how sweeps stand, what they select, and how to use it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

EPILOGUE = """\
KEY=VALUE is as for `python -m fairall`: outputs_dir=FOLDER or sweep.storage=URL say where studies are."""


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m fairall.sweeps",
        description="Studies of `python -m fairall --multirun sweeps=NAME`.",
        epilog=EPILOGUE,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("list", help="every study and where it stands (the default)")
    for command, arguments, told in (
        ("show", ["NAME"], "progress, what is selected so far, Pareto set, importances, and a figure"),
        ("export", ["NAME", "FOLDER"], "what is selected as a file for hparams=NAME"),
        (
            "compare",
            ["NAMES"],
            "what is selected beside what the paper selected; of all studies unless named",
        ),
    ):
        subparser = commands.add_parser(command, help=told, epilog=EPILOGUE)
        for argument in arguments:
            subparser.add_argument(argument.lower(), nargs="*" if argument == "NAMES" else None)
        if "NAMES" not in arguments:
            subparser.add_argument("overrides", metavar="KEY=VALUE", nargs="*")
    arguments = parser.parse_args(words)
    os.environ["HYDRA_FULL_ERROR"] = "1"

    # Heavy: after `--help` has been answered.
    from fairall.explain import MISTAKES, tell
    from fairall.sweeps import report

    overrides = list(getattr(arguments, "overrides", []))
    try:
        if arguments.command == "show":
            report.show(arguments.name, overrides)
        elif arguments.command == "export":
            report.export(arguments.name, arguments.folder, overrides)
        elif arguments.command == "compare":
            overrides = [word for word in arguments.names if "=" in word]
            report.compare([word for word in arguments.names if "=" not in word], overrides)
        else:
            report.listed(overrides)
    except MISTAKES as error:
        return tell(error, overrides)
    except KeyboardInterrupt:
        print("fairall: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
