"""Log finished runs that MLflow does not have (`sync`), and show its page (`ui`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from fairall.config.compose import compose_config, places, plain_tracking
from fairall.errors import FairAllError, count
from fairall.results.runs import load, load_results
from fairall.storage.run_folder import RunFolder
from fairall.tracking.outbox import Outbox
from fairall.tracking.store import Store, connection, has_server, how_to_look, page_address, reaching


def sync(overrides: Sequence[str]) -> int:
    """Log the finished runs in `outputs_dir` that MLflow does not have.

    Args:
        overrides: `KEY=VALUE` words; `tracking.` ones are used in place of the runs' own.

    Returns:
        The exit code, 1 if a run could not be logged.
    """
    if any(word.startswith("tracking.register=") for word in overrides):
        raise FairAllError(
            "tracking.register: `sync` registers runs under the name they were made with; to register a run, "
            "repeat its command with tracking.register=NAME"
        )
    composed = compose_config(*overrides)
    moved = {}
    if any(word.startswith("tracking.") for word in overrides):
        moved = {key: value for key, value in plain_tracking(composed).items() if key != "register"}
    collection = load_results(Path(composed.outputs_dir) / "runs")
    for path, reason in collection.left_out:
        print(f"Left out: {path}: {reason}")
    tracked = [run for run in collection.results if run.config["tracking"]["enabled"]]
    sent, failed = 0, 0
    for run in tracked:
        tracking = run.config["tracking"] | moved
        config = run.config | {"outputs_dir": composed.outputs_dir, "tracking": tracking}
        try:
            with RunFolder(run.path).locked(log=print):
                result = load(run.path)  # another process may have restarted it
                outbox = Outbox(config, run.path, print)
                sent += outbox.send(result)
                for sentence in outbox.register():
                    print(sentence)
        except FairAllError as error:
            print(f"fairall: {run.path}: {error}", file=sys.stderr)
            failed += 1
    print(f"Logged {count(sent, 'run')} to MLflow; {len(tracked) - sent - failed} were already there.")
    return 1 if failed else 0


def ui(overrides: Sequence[str]) -> int:
    """Print the address of the experiment and, where the store is no server, become one that shows it."""
    config = places(overrides)
    if how_to_look(config) is None:
        raise FairAllError(f"{config['outputs_dir']} has no MLflow store: the first run makes it")
    print(f"MLflow: {page_address(config, reaching(config, lambda: Store(config).experiment))}", flush=True)
    if not has_server(config):
        # Not an argument of the command: every user of the machine sees those.
        os.environ["MLFLOW_BACKEND_STORE_URI"] = connection(config)
        os.execv(sys.executable, [sys.executable, "-m", "mlflow", "ui", "--host", "127.0.0.1"])
    return 0
