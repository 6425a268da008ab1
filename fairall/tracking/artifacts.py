"""Reports as MLflow runs, and finished runs out of MLflow."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairall.config.checks import check, plain_name
from fairall.config.compose import places
from fairall.errors import FairAllError
from fairall.results.runs import Results, load_results
from fairall.runtime.credentials import hidden
from fairall.runtime.process import this_process
from fairall.storage.files import temporary_folder
from fairall.storage.run_folder import FILES, RunFolder
from fairall.tracking.client import (
    ELSEWHERE,
    KIND_TAG,
    NOT_THERE,
    PROCESS_TAG,
    Store,
    allowed,
    connection,
    how_to_look,
    log_folder,
    quiet_mlflow,
    reaching,
    store_uri,
)
from fairall.tracking.page import NOTE_TAG, note_of_report
from fairall.tracking.run_logger import RUN_TAG
from fairall.tracking.source import source_tags


def log_report(
    config: dict[str, Any],
    folder: Path,
    title: str,
    command: str,
    *,
    metrics: Mapping[str, float] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> None:
    """Log a report's folder, with its page, tables and figures, as a run of its own.

    Args:
        config: with `outputs_dir` and `tracking`.
        folder: of the report.
        title: name of the run.
        command: command line of the user.
        metrics: numbers by name, at most 1000.
        parameters: further values by name, at most 100.

    Raises:
        FairAllError: where MLflow cannot be reached.
    """
    from mlflow.entities import Metric, Param

    def keep() -> None:
        store = Store(config)
        tags = {
            "mlflow.runName": title,
            "fairall.command": command,
            KIND_TAG: "report",
            PROCESS_TAG: this_process(),
        }
        run_id = store.client.create_run(store.experiment, tags=source_tags() | tags).info.run_id
        now = int(1000 * time.time())
        store.client.log_batch(
            run_id,
            metrics=[Metric(allowed(name), value, now, 0) for name, value in (metrics or {}).items()],
            params=[Param(allowed(name), str(value)[:500]) for name, value in (parameters or {}).items()],
        )
        log_folder(store.client, run_id, folder)
        store.client.set_tag(run_id, NOTE_TAG, note_of_report(folder, store.experiment, run_id))
        store.client.set_terminated(run_id, "FINISHED")

    reaching(config, keep)


def load_logged_results(*overrides: str) -> Results:
    """The results of all finished runs in an MLflow store, without figures.

    Args:
        overrides: words that say where it is, as on the command line: `outputs_dir=FOLDER` or
            `tracking.uri=URI`.

    Raises:
        FairAllError: where MLflow cannot be reached.
    """
    with temporary_folder() as folder:
        fetch_runs(places(overrides), folder)
        return load_results(folder)


def fetch_runs(config: dict[str, Any], folder: Path) -> None:
    """Download the finished runs of a store to a folder laid out as outputs/runs, without figures.

    The last of several MLflow runs of one run is used. Files that a run lacks are skipped.

    Raises:
        FairAllError: where MLflow cannot be reached.
    """
    reaching(config, lambda: _fetch(Store(config), folder))


def download(address: str, folder: Path, config: dict[str, Any]) -> None:
    """Download what is at an address in a store, which is not changed.

    Args:
        address: `runs:/ID/PATH` or `models:/...`.
        folder: to download to.
        config: with `outputs_dir` and `tracking.uri`.

    Raises:
        FairAllError: where the store cannot be reached, or has nothing there.
    """
    if how_to_look(config) is None:
        raise FairAllError(
            f"{address}: {config['outputs_dir']} has no MLflow store; name it with tracking.uri=URI or "
            "MLFLOW_TRACKING_URI, or give outputs_dir=FOLDER"
        )
    missing = reaching(config, lambda: _download(address, folder, config), remedy=ELSEWHERE)
    if missing is not None:
        raise FairAllError(f"{address}: not found in {store_uri(config)} ({missing})")


def _download(address: str, folder: Path, config: dict[str, Any]) -> str | None:
    """Download; why not, where the store answers that there is nothing."""
    mlflow = quiet_mlflow()
    from mlflow.exceptions import MlflowException

    before = mlflow.get_tracking_uri() if mlflow.is_tracking_uri_set() else None
    mlflow.set_tracking_uri(connection(config))  # a logged model is looked for there alone
    try:
        mlflow.artifacts.download_artifacts(address, dst_path=str(folder))
    except MlflowException as error:
        reason = hidden(str(error)).strip().split("\n")[0]
        if error.error_code in NOT_THERE or reason.startswith("Failed to download"):
            return reason
        raise
    finally:
        mlflow.set_tracking_uri(before)
    return None


def _fetch(store: Store, folder: Path) -> None:
    from mlflow.exceptions import MlflowException

    for run in reversed(list(store.search("attributes.status = 'FINISHED'"))):
        tags = run.data.tags
        names = [tags.get(name, "") for name in ("fairall.model", "fairall.dataset", RUN_TAG)]
        if not all(names):
            continue  # of one seed, a report, or somebody else's
        for name in names:
            check("a tag of a run in MLflow", name, plain_name())  # part of a path
        path = folder.joinpath(*names)
        path.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            try:
                store.client.download_artifacts(run.info.run_id, name, str(path))
            except (MlflowException, OSError):
                continue  # reading the run reports what is missing
        RunFolder(path).finish()
        ended = run.info.end_time or run.info.start_time  # none where its status alone was set
        os.utime(path / "DONE", (ended / 1000,) * 2)
