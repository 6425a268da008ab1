"""Runs and policies out of an MLflow store."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from fairall.config.checks import check, plain_name
from fairall.config.compose import places
from fairall.config.schema import Config
from fairall.errors import FairAllError
from fairall.results.runs import Results, load_results
from fairall.runtime.credentials import hidden
from fairall.storage.run_folder import FILES, RunFolder
from fairall.tracking.store import ELSEWHERE, RUN_TAG, Store, how_to_look, reaching, store_uri

NOT_THERE = ("RESOURCE_DOES_NOT_EXIST", "NOT_FOUND", "INVALID_PARAMETER_VALUE")  # MLflow's answers


def load_logged_results(*overrides: str) -> Results:
    """The results of all finished runs in an MLflow store.

    Args:
        overrides: words that say where it is, as on the command line: `outputs_dir=FOLDER` or
            `tracking.uri=URI`.

    Raises:
        FairAllError: where MLflow is not installed or cannot be reached.
    """
    config = places(overrides)
    with TemporaryDirectory() as folder:
        reaching(config, lambda: fetch_runs(Store(config), Path(folder)))
        return load_results(folder)


def fetch_runs(store: Store, folder: Path) -> None:
    """Download the finished runs of a store to a folder laid out as outputs/runs, without figures.

    The last of several MLflow runs of one run is used. Files that a run lacks are skipped.
    """
    from mlflow.exceptions import MlflowException

    for run in reversed(store.search("attributes.status = 'FINISHED'")):
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


def download(address: str, folder: Path, config: Config) -> None:
    """Download what is at an address in a store, which is not changed.

    Args:
        address: `runs:/ID/PATH` or `models:/...`.
        folder: to download to.
        config: with `outputs_dir` and `tracking.uri`.

    Raises:
        FairAllError: where MLflow is not installed, the store cannot be reached, or has nothing there.
    """
    if how_to_look(config) is None:
        raise FairAllError(
            f"{address}: {config.outputs_dir} has no MLflow store; name it with tracking.uri=URI or "
            "MLFLOW_TRACKING_URI, or give outputs_dir=FOLDER"
        )

    def fetch() -> str | None:
        """Download; return why not, where the store answers that there is nothing."""
        import mlflow

        try:
            mlflow.artifacts.download_artifacts(address, dst_path=str(folder))
        except mlflow.exceptions.MlflowException as error:
            reason = hidden(str(error)).strip().split("\n")[0]
            if error.error_code in NOT_THERE or reason.startswith("Failed to download"):
                return reason
            raise
        return None

    missing = reaching(config, fetch, remedy=ELSEWHERE)
    if missing is not None:
        raise FairAllError(f"{address}: not found in {store_uri(config)} ({missing})")
