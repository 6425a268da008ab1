"""Finished runs that MLflow does not have, and MLflow's page of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from fairall.config.compose import compose_config, places, plain_tracking
from fairall.errors import FairAllError, count
from fairall.results.runs import load, load_results
from fairall.storage.run_folder import RunFolder
from fairall.tracking.client import Store, connection, has_server, how_to_look, page_address, reaching
from fairall.tracking.outbox import Outbox


def sync(overrides: Sequence[str]) -> bool:
    """Log the runs; return whether all could be logged.

    Args:
        overrides: `outputs_dir=FOLDER`, where the runs are; `tracking.uri=URI`, a store in place of that in
            the runs' configurations.
    """
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
    return not failed


def show_page(overrides: Sequence[str]) -> None:
    """Print the address of the experiment and, where the store is no server, become one that shows it.

    Raises:
        FairAllError: where there is no store.
    """
    config = places(overrides)
    if how_to_look(config) is None:
        raise FairAllError(f"{config['outputs_dir']} has no MLflow store: the first run makes it")
    print(f"MLflow: {page_address(config, reaching(config, lambda: Store(config).experiment))}", flush=True)
    if not has_server(config):
        # Not an argument of the command: every user of the machine sees those.
        os.environ["MLFLOW_BACKEND_STORE_URI"] = connection(config)
        os.execv(sys.executable, [sys.executable, "-m", "mlflow", "ui", "--host", "127.0.0.1"])
