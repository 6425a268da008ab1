"""Log finished runs that MLflow does not have."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from fairall.config.compose import compose_config, places_of
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
