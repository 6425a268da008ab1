"""Runs and policies out of an MLflow store."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from fairall.config.checks import check_values, plain_name
from fairall.config.compose import places
from fairall.config.schema import Config
from fairall.errors import FairAllError
from fairall.results.runs import Results, load_results
from fairall.runtime.credentials import hidden
from fairall.storage.run_folder import FILES, RunFolder
from fairall.tracking.store import RUN_TAG, connected, experiment_of, how_to_look, store_uri

MOST_RUNS = 50_000  # that MLflow gives at once


def load_logged_results(*overrides: str) -> Results:
    """The results of all finished runs in an MLflow store.

    Args:
        overrides: words that say where it is, as on the command line: `outputs_dir=FOLDER` or
            `tracking.uri=URI`.

    Raises:
        FairAllError: where MLflow is not installed or cannot be reached.
    """
    config = places(overrides)
    finished = f"attributes.status = 'FINISHED' and tags.`{RUN_TAG}` != ''"  # not reports
    with TemporaryDirectory() as temporary:
        with connected(config) as client:
            runs = client.search_runs([experiment_of(client, config)], finished, max_results=MOST_RUNS)
            for run in reversed(runs):  # the last of several MLflow runs of one run is used
                identity = run.data.tags[RUN_TAG]
                check_values(identity, "a tag of a run in MLflow", plain_name())  # part of a path
                path = Path(temporary, "model", "dataset", identity)
                path.mkdir(parents=True, exist_ok=True)
                for name in FILES:
                    with suppress(Exception):  # reading the run reports what is missing
                        client.download_artifacts(run.info.run_id, name, str(path))
                RunFolder(path).finish()
                ended = run.info.end_time or run.info.start_time  # none where its status alone was set
                os.utime(path / "DONE", (ended / 1000,) * 2)
        return load_results(temporary)


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
            f"{config.outputs_dir} has no MLflow store; name it with tracking.uri=URI or "
            "MLFLOW_TRACKING_URI, or give outputs_dir=FOLDER"
        )
    missing = ""
    with connected(config):
        import mlflow

        try:
            mlflow.artifacts.download_artifacts(address, dst_path=str(folder))
        except mlflow.exceptions.MlflowException as error:
            missing = hidden(str(error)).partition("\n")[0]
    if missing:
        raise FairAllError(f"it cannot be read from {store_uri(config)} ({missing})")
