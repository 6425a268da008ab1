"""`python -m fairall.data`: list, fetch, describe and check data sets."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fairall.runtime.process import refuse_unknown, run_command

EPILOGUE = """\
KEY=VALUE is as for `python -m fairall`, for instance dataset.accept_terms=true.
Raw files are looked for in dataset.raw_file, $FAIRALL_DATA/NAME/ and the cache folder
($XDG_CACHE_HOME or ~/.cache, there fairall/NAME/), then fetched into the cache folder."""


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    return run_command(_main, words)


def _main(words: Sequence[str]) -> int:
    # Parsed first: subparsers take no option between a name and the words after it.
    option = argparse.ArgumentParser(prog="python -m fairall.data", add_help=False)
    option.add_argument(
        "-cd",
        "--config-dir",
        metavar="FOLDER",
        type=Path,
        help="where files of your own are, such as FOLDER/dataset/NAME.yaml, as for `python -m fairall`",
    )
    given, words = option.parse_known_args(words)
    folder: Path | None = given.config_dir
    parser = argparse.ArgumentParser(
        prog="python -m fairall.data",
        parents=[option],
        description="List, fetch, describe and check data sets.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser("list", help="every data set and where it is (the default)", parents=[option])
    for command, argument, told in (
        ("fetch", "NAME", "fetch the raw file of a data set, if it is not here yet"),
        ("describe", "NAME", "rows, kinds, groups, labels, missing values, acceptance of initial policies"),
        ("check", "PATH", "how a run would read a CSV, and every problem that prevents one"),
    ):
        subparser = commands.add_parser(command, help=told, epilog=EPILOGUE, parents=[option])
        subparser.add_argument("what", metavar=argument)
        subparser.add_argument("overrides", metavar="KEY=VALUE", nargs="*")
    refuse_unknown(words, [*commands.choices], parser)
    arguments = parser.parse_args(words)

    # Slow imports, not needed for `--help`.
    from fairall.config.compose import searched_folder
    from fairall.config.messages import exit_code
    from fairall.data import describe
    from fairall.errors import FairAllError

    overrides: list[str] = getattr(arguments, "overrides", [])
    if folder is not None:
        overrides = [searched_folder(folder), *overrides]

    def work() -> int:
        if folder is not None and not folder.is_dir():
            raise FairAllError(f"-cd {folder}: there is no such folder")
        if arguments.command == "fetch":
            describe.fetch(arguments.what, overrides)
        elif arguments.command == "describe":
            describe.describe(arguments.what, overrides, folder)
        elif arguments.command == "check":
            return 0 if describe.check(arguments.what, overrides, folder) else 1
        else:
            describe.list_known(overrides, folder)
        return 0

    # Overrides that error messages refer to.
    chosen = [f"dataset={arguments.what}"] if arguments.command in ("fetch", "describe") else []
    return exit_code(work, [*chosen, *overrides])


if __name__ == "__main__":
    sys.exit(main())
