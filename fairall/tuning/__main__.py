"""`python -m fairall.tuning`: progress of studies, the trials they select, and their export."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from fairall.runtime.process import refuse_unknown, run_command

EPILOGUE = """\
outputs_dir=FOLDER selects the folder of the studies."""


def main(given: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    return run_command(_main, given)


def _main(given: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m fairall.tuning",
        description="Studies of `python -m fairall --multirun sweeps=NAME`.",
        epilog=EPILOGUE,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for command, positionals, text in (
        ("list", [], "every study and where it stands (the default)"),
        ("show", ["name"], "progress, what is selected so far, Pareto set, importances, and a figure"),
        ("export", ["name", "folder"], "what is selected as a file for hparams=NAME"),
        ("compare", [], "what is selected beside what the paper selected; of all studies unless named"),
    ):
        subparser = commands.add_parser(command, help=text, epilog=EPILOGUE)
        for positional in positionals:
            subparser.add_argument(positional, metavar=positional.upper())
        wanted = "NAME or KEY=VALUE" if command == "compare" else "KEY=VALUE"
        subparser.add_argument("words", metavar=wanted, nargs="*")
    given = sys.argv[1:] if given is None else given
    refuse_unknown(given, [*commands.choices], parser)
    arguments = parser.parse_args(given)

    # Heavy: after `--help` has been answered.
    from fairall.config.messages import exit_code
    from fairall.tuning import report

    words = getattr(arguments, "words", [])
    overrides = [word for word in words if "=" in word]
    names = [word for word in words if "=" not in word]

    def work() -> int:
        if arguments.command == "compare":
            report.compare(names, overrides)
        elif names:
            parser.error(f"{names[0]}: not KEY=VALUE")
        elif arguments.command == "show":
            report.show(arguments.name, overrides)
        elif arguments.command == "export":
            report.export(arguments.name, arguments.folder, overrides)
        else:
            report.listed(overrides)
        return 0

    return exit_code(work, overrides)


if __name__ == "__main__":
    sys.exit(main())
