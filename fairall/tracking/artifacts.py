"""Reports as MLflow runs, and finished runs out of MLflow."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairall.config.checks import plain_name
from fairall.runtime.process import this_process
from fairall.storage.run_folder import FILES, RunFolder
from fairall.tracking.client import KIND_TAG, PROCESS_TAG, Store, allowed, reaching
from fairall.tracking.page import NOTE_TAG, note_of_report
from fairall.tracking.run_logger import RUN_TAG


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
        run_id = store.client.create_run(store.experiment, tags=tags).info.run_id
        now = int(1000 * time.time())
        store.client.log_batch(
            run_id,
            metrics=[Metric(allowed(name), value, now, 0) for name, value in (metrics or {}).items()],
            params=[Param(allowed(name), str(value)[:500]) for name, value in (parameters or {}).items()],
        )
        store.client.log_artifacts(run_id, str(folder))
        store.client.set_tag(run_id, NOTE_TAG, note_of_report(folder, store.experiment, run_id))
        store.client.set_terminated(run_id, "FINISHED")

    reaching(config, keep)


def fetch_runs(config: dict[str, Any], folder: Path) -> None:
    """Download the finished runs of a store to a folder laid out as outputs/runs, without figures.

    The last of several MLflow runs of one run is used. Files that a run lacks are skipped.

    Raises:
        FairAllError: where MLflow cannot be reached.
    """
    reaching(config, lambda: _fetch(Store(config), folder))


def _fetch(store: Store, folder: Path) -> None:
    from mlflow.exceptions import MlflowException

    for run in reversed(list(store.search("attributes.status = 'FINISHED'"))):
        tags = run.data.tags
        if RUN_TAG not in tags:
            continue  # of one seed, or a report
        names = [tags[name] for name in ("fairall.model", "fairall.dataset", RUN_TAG)]
        for name in names:
            plain_name("a tag of a run in MLflow", name)  # part of a path
        path = folder.joinpath(*names)
        path.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            try:
                store.client.download_artifacts(run.info.run_id, name, str(path))
            except (MlflowException, OSError):
                continue  # reading the run reports what is missing
        RunFolder(path).finish()
        os.utime(path / "DONE", (run.info.end_time / 1000,) * 2)
