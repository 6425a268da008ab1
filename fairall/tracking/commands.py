"""Log finished runs that MLflow does not have (`sync`), and show its page (`ui`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fairall.config.compose import compose_config, places, places_of
from fairall.errors import FairAllError, count
from fairall.results.runs import load, load_results
from fairall.storage.run_folder import RunFolder
from fairall.tracking import store
from fairall.tracking.logger import log


def sync(overrides: Sequence[str]) -> int:
    """Log the finished runs in `outputs_dir` that MLflow does not have.

    Args:
        overrides: `KEY=VALUE` words; `tracking.` ones are used in place of the runs' own.

    Returns:
        The exit code, 1 if a run could not be logged.

    Raises:
        FairAllError: where MLflow is not installed, or a name to register is given.
    """
    if any(word.startswith("tracking.register=") for word in overrides):
        raise FairAllError(
            "tracking.register: `sync` registers runs under the name they were made with; to register a run, "
            "repeat its command with tracking.register=NAME"
        )
    store.quiet_mlflow()
    here = places_of(compose_config(*overrides))
    moved = any(word.startswith("tracking.") for word in overrides)
    collection = load_results(Path(here.outputs_dir) / "runs")
    for path, reason in collection.left_out:
        print(f"Left out: {path}: {reason}")
    tracked = [run for run in collection.results if run.config.tracking.enabled]
    sent, failed = 0, 0
    for run in tracked:
        own = run.config.tracking
        tracking = replace(here.tracking, register=own.register) if moved else own
        try:
            with RunFolder(run.path).locked(log=print):
                load(run.path)  # another process may have restarted it
                logged = log(run.path, replace(here, tracking=tracking))
        except FairAllError as error:
            print(f"fairall: {run.path}: {error}", file=sys.stderr)
            failed += 1
        else:
            sent += logged.is_new
            for line in logged.registered:
                print(line)
    print(f"Logged {count(sent, 'run')} to MLflow; {len(tracked) - sent - failed} were already there.")
    return 1 if failed else 0


def ui(overrides: Sequence[str], port: int | None = None) -> int:
    """Print the address of the experiment and, where the store is no server, become one that shows it.

    Args:
        overrides: `KEY=VALUE` words about the store.
        port: of the server that this process becomes; None: `PORT`.

    Returns:
        The exit code.

    Raises:
        FairAllError: where MLflow is not installed or there is no store, or one with a server gets a port.
    """
    config = places(overrides)
    store.quiet_mlflow()
    if store.how_to_look(config) is None:
        raise FairAllError(f"{config.outputs_dir} has no MLflow store: the first run makes it")
    if port is not None and store.has_server(config):
        raise FairAllError(f"--port: {config.tracking.uri} is a server with a page of its own; go without")
    experiment = store.reaching(config, lambda: store.Store(config).experiment)
    print(f"MLflow: {store.page_address(config, experiment, port or store.PORT)}", flush=True)
    if not store.has_server(config):
        # Not an argument of the command: every user of the machine sees those.
        os.environ["MLFLOW_BACKEND_STORE_URI"] = store.connection(config)
        server = ["mlflow", "ui", "--host", "127.0.0.1", "--port", str(port or store.PORT)]
        os.execv(sys.executable, [sys.executable, "-m", *server])
    return 0
