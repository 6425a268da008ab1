"""Log finished runs that MLflow does not have (`sync`), and show its page (`ui`)."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from fairall.config.compose import compose_config, places, places_of
from fairall.config.words import Words
from fairall.errors import FairAllError, count
from fairall.results.runs import load, load_results
from fairall.storage.run_folder import RunFolder
from fairall.tracking import store
from fairall.tracking.logger import log


def sync(overrides: Words) -> int:
    """Log the finished runs in `outputs_dir` that MLflow does not have.

    Args:
        overrides: `KEY=VALUE` words. Without `tracking.` ones a run is logged to the store in `outputs_dir`,
            or to the `tracking.uri` that it was made with if MLFLOW_TRACKING_URI is that address: the folder
            of a run may be a stranger's.

    Returns:
        The exit code, 1 if a run could not be logged.

    Raises:
        FairAllError: where MLflow is not installed, or a name to register is given.
    """
    here = places_of(compose_config(*overrides))
    if here.tracking.register is not None:
        raise FairAllError(
            "tracking.register: `sync` registers nothing; to register a run, repeat its command with "
            "tracking.register=NAME"
        )
    store.quiet_mlflow()
    moved = any(word.startswith("tracking") for word in overrides)
    collection = load_results(Path(here.outputs_dir) / "runs")
    for path, reason in collection.left_out:
        print(f"Left out: {path}: {reason}")
    tracked = [run for run in collection.results if run.config.tracking.enabled]
    sent, failed = 0, 0
    for run in tracked:
        stored = run.config.tracking
        unmoved = replace(here.tracking, uri=stored.uri, experiment=stored.experiment)
        try:
            if not moved and stored.uri not in (None, store.named_uri(here)):
                raise FairAllError(
                    f"it was made with tracking.uri={stored.uri}: repeat that word to log it there, or give "
                    "the address of another store"
                )
            with RunFolder(run.path).locked(log=print):
                load(run.path)  # another process may have restarted it
                logged = log(run.path, here if moved else replace(here, tracking=unmoved))
        except FairAllError as error:
            print(f"fairall: {run.path}: {error}", file=sys.stderr)
            failed += 1
        else:
            sent += logged.is_new
    print(f"Logged {count(sent, 'run')} to MLflow; {len(tracked) - sent - failed} were already there.")
    return 1 if failed else 0


def ui(overrides: Words, port: int | None = None) -> int:
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
        at = ["--host", "127.0.0.1", "--port", str(port or store.PORT)]
        os.execv(sys.executable, [sys.executable, "-m", "mlflow", "ui", *at])
    return 0
