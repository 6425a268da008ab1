"""`python -m fairall.data`: what data there is, where it is, what is in it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from fairall import terminal

EPILOGUE = """\
KEY=VALUE is as for `python -m fairall`, for instance dataset.accept_terms=true.
Raw files are looked for in dataset.raw_file, $FAIRALL_DATA/NAME/ and the cache folder
($XDG_CACHE_HOME or ~/.cache, there fairall/NAME/), then fetched into the cache folder."""


def main(words: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    terminal.prepare()
    parser = argparse.ArgumentParser(
        prog="python -m fairall.data",
        description="The data sets: what is known, where each is, and what is in it.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("list", help="every data set and where it is (the default)")
    for command, argument, told in (
        ("fetch", "NAME", "fetch the raw file of a data set, if it is not here yet"),
        ("describe", "NAME", "rows, kinds, groups, labels, missing values, acceptance of initial policies"),
        ("check", "PATH", "what a run would make of a CSV, and everything that stands in its way"),
    ):
        subparser = commands.add_parser(command, help=told, epilog=EPILOGUE)
        subparser.add_argument("what", metavar=argument)
        subparser.add_argument("overrides", metavar="KEY=VALUE", nargs="*")
    arguments = parser.parse_args(words)
    os.environ["HYDRA_FULL_ERROR"] = "1"
    overrides = getattr(arguments, "overrides", [])

    # Heavy: after `--help` has been answered.
    from fairall.explain import exit_code
    from fairall.report import data as report

    def work() -> int:
        if arguments.command == "fetch":
            report.fetch(arguments.what, overrides)
        elif arguments.command == "describe":
            report.describe(arguments.what, overrides)
        elif arguments.command == "check":
            return 0 if report.check(arguments.what, overrides) else 1
        else:
            report.list_known()
        return 0

    return exit_code(work, overrides)


if __name__ == "__main__":
    sys.exit(main())
