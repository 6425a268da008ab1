"""`python -m fairall.tracking`: log finished runs that MLflow does not have, and show MLflow's page."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

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
    parser, commands = _parser()
    refuse_unknown(words, commands, parser)
    arguments = parser.parse_args(words)

    # Slow imports, not needed for `--help`.
    from fairall.config.messages import exit_code

    return exit_code(lambda: arguments.command(arguments.overrides), arguments.overrides)


def _sync(overrides: Sequence[str]) -> int:
    """Log the runs; return the exit code, 1 where a run could not be logged."""
    from fairall.config.compose import compose_config, plain_tracking
    from fairall.errors import FairAllError, count
    from fairall.results.runs import load, load_results
    from fairall.storage.run_folder import RunFolder
    from fairall.tracking.outbox import Outbox

    if any(word.startswith("tracking.register=") for word in overrides):
        raise FairAllError(
            "tracking.register: `sync` registers runs under the name they were made with; to register a run, "
            "repeat its command with tracking.register=NAME"
        )
    composed = compose_config(*overrides)
    elsewhere = plain_tracking(composed)
    outputs = composed.outputs_dir
    collection = load_results(Path(outputs) / "runs")
    for path, reason in collection.left_out:
        print(f"Left out: {path}: {reason}")
    tracked = [run for run in collection.results if run.config["tracking"]["enabled"]]
    moved = any(word.startswith("tracking.") for word in overrides)
    sent, failed = 0, 0
    for run in tracked:
        config = run.config | {"outputs_dir": outputs}
        if moved:
            config["tracking"] = elsewhere | {"register": run.config["tracking"]["register"]}
        try:
            with RunFolder(run.path).locked(log=print):
                load(run.path)  # again: another process may have restarted it
                outbox = Outbox(config, run.path, print)
                sent += outbox.send()
                for sentence in outbox.register():
                    print(sentence)
        except FairAllError as error:
            print(f"fairall: {run.path}: {error}", file=sys.stderr)
            failed += 1
    print(f"Logged {count(sent, 'run')} to MLflow; {len(tracked) - sent - failed} were already there.")
    return 1 if failed else 0


def _ui(overrides: Sequence[str]) -> int:
    """Print the address of the experiment and, where the store is no server, become one that shows it."""
    from fairall.config.compose import places
    from fairall.errors import FairAllError
    from fairall.tracking.client import Store, connection, has_server, how_to_look, page_address, reaching

    config = places(overrides)
    if how_to_look(config) is None:
        raise FairAllError(f"{config['outputs_dir']} has no MLflow store: the first run makes it")
    print(f"MLflow: {page_address(config, reaching(config, lambda: Store(config).experiment))}", flush=True)
    if not has_server(config):
        # Not an argument of the command: every user of the machine sees those.
        os.environ["MLFLOW_BACKEND_STORE_URI"] = connection(config)
        os.execv(sys.executable, [sys.executable, "-m", "mlflow", "ui", "--host", "127.0.0.1"])
    return 0


def _parser() -> tuple[argparse.ArgumentParser, list[str]]:
    """The parser, and the names of its commands."""
    parser = argparse.ArgumentParser(
        prog="python -m fairall.tracking",
        description="Logs finished runs that MLflow does not have, and shows MLflow's page.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, command, what in (
        ("sync", _sync, "log the runs in outputs_dir that MLflow does not have"),
        ("ui", _ui, "show MLflow's page, opened on the runs; Ctrl-C ends its server"),
    ):
        described = commands.add_parser(name, help=what, description=what, epilog=EPILOGUE,
                                        formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
        described.add_argument("overrides", metavar="KEY=VALUE", nargs="*")
        described.set_defaults(command=command)
    return parser, [*commands.choices]


if __name__ == "__main__":
    sys.exit(main())
