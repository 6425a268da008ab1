"""`python -m fairall.tracking sync`: log finished runs that MLflow does not have."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from fairall.runtime.setup import run_command

EPILOGUE = """\
KEY=VALUE is as for `python -m fairall`: outputs_dir=FOLDER says where runs are; tracking.uri=URI names
another store than the one in the runs' configurations, for instance a new one.

Runs with tracking.enabled=false, such as the trials of a sweep, are not logged.

  python -m fairall.tracking sync                        after MLflow was away, or its database was lost
  python -m fairall.tracking sync tracking.uri=http://mlflow.example.org:5000"""


def main(words: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    return run_command(lambda: _main(words))


def _main(words: Sequence[str] | None) -> int:
    arguments = _parser().parse_args(words)

    # Slow imports, not needed for `--help`.
    from fairall.config.messages import exit_code

    return exit_code(lambda: _sync(arguments.overrides), arguments.overrides)


def _sync(overrides: Sequence[str]) -> int:
    """Log the runs; return the exit code, 1 where a run could not be logged."""
    from omegaconf import OmegaConf

    from fairall.config.compose import compose_config
    from fairall.errors import FairAllError, count
    from fairall.results.finished import collect, read_run
    from fairall.storage.run_folder import RunFolder
    from fairall.tracking.outbox import Outbox

    composed = compose_config(*overrides)
    elsewhere = cast(dict[str, Any], OmegaConf.to_container(composed.tracking))
    outputs = composed.outputs_dir
    collection = collect(Path(outputs) / "runs")
    for path, reason in collection.left_out:
        print(f"Left out: {path}: {reason}")
    tracked = [run for run in collection.runs if run.config["tracking"]["enabled"]]
    moved = any(word.startswith("tracking.") for word in overrides)
    sent, failed = 0, 0
    for run in tracked:
        config = run.config | {"outputs_dir": outputs}
        if moved:
            config["tracking"] = elsewhere
        try:
            with RunFolder(run.path).locked(log=print):
                read_run(run.path)  # again: another process may have restarted it
                sent += Outbox(config, run.path, print).send()
        except FairAllError as error:
            print(f"fairall: {run.path}: {error}", file=sys.stderr)
            failed += 1
    print(f"Logged {count(sent, 'run')} to MLflow; {len(tracked) - sent - failed} were already there.")
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fairall.tracking",
        description="Logs finished runs that MLflow does not have.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    sync = commands.add_parser("sync", help="of all runs in outputs_dir", epilog=EPILOGUE,
                               formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    sync.add_argument("overrides", metavar="KEY=VALUE", nargs="*")
    return parser


if __name__ == "__main__":
    sys.exit(main())
