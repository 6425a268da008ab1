"""`python -m fairall.tracking`: log finished runs that MLflow does not have, and show MLflow's page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from fairall.runtime.process import refuse_unknown, run_command

EPILOGUE = """\
KEY=VALUE is as for `python -m fairall`: outputs_dir=FOLDER says where runs are; tracking.uri=URI names
another store than the one in the runs' configurations, for instance a new one. Configurations have no user or
password: give them in tracking.uri=URI, in MLFLOW_TRACKING_URI, or as MLFLOW_TRACKING_USERNAME and _PASSWORD.

Runs with tracking.enabled=false, such as the trials of a sweep, are not logged. A run that was made with
tracking.register=NAME is registered too; to register another, repeat its command with tracking.register=NAME.

  python -m fairall.tracking sync                        after MLflow was away, or its database was lost
  python -m fairall.tracking sync tracking.uri=http://mlflow.example.org:5000
  python -m fairall.tracking ui                          MLflow's page of the runs in outputs_dir"""


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    return run_command(_main, words)


def _main(words: Sequence[str]) -> int:
    commands = {
        "sync": "log the runs in outputs_dir that MLflow does not have",
        "ui": "show MLflow's page, opened on the runs; Ctrl-C ends its server",
    }
    parser = argparse.ArgumentParser(
        prog="python -m fairall.tracking",
        description="Logs finished runs that MLflow does not have, and shows MLflow's page.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parsers = parser.add_subparsers(metavar="COMMAND", required=True, dest="command")
    for name, what in commands.items():
        described = parsers.add_parser(name, help=what, description=what, epilog=EPILOGUE,
                                       formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
        described.add_argument("overrides", metavar="KEY=VALUE", nargs="*")
    refuse_unknown(words, [*commands], parser)
    arguments = parser.parse_args(words)

    # Slow imports, not needed for `--help`.
    from fairall.config.messages import exit_code
    from fairall.tracking.commands import sync, ui

    command = sync if arguments.command == "sync" else ui
    return exit_code(lambda: command(arguments.overrides), arguments.overrides)


if __name__ == "__main__":
    sys.exit(main())
