"""A run that is in MLflow, and folders to which its result can be logged anew."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlflow
import pytest

from fairall.config.schema import Config
from fairall.storage.stored import read_stored
from tests.conftest import LOANS, MEANING, logged_runs, run_folder, succeeded

SMALL = ["model=fairlog", "dataset=synthetic", "preset=quick", "seeds=1"]
RUN = """
    preset=quick seeds=2 schedule.warm_up_epochs=2 schedule.phase1_epochs=1 schedule.time_steps=4
    evaluation.window=[1,4] evaluation.decisions=true dataset=csv dataset.path=loans.csv
    dataset.drop=[id,decision]
""".split()
RUN += MEANING


@pytest.fixture(scope="session")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The outputs of a run whose policy is version 1 of `loans`, of a table with a column of odd name."""
    folder = tmp_path_factory.mktemp("tracked")
    (folder / "loans.csv").write_text(LOANS.read_text().replace("income", "income (€) %", 1))
    ended = succeeded(*RUN, "tracking.register=loans", cwd=folder)
    assert ended.stdout.endswith("\nRegistered: version 1 of loans: models:/loans/1\n")
    return folder / "outputs"


@pytest.fixture
def unlogged(outputs: Path, tmp_path: Path) -> tuple[Path, Config]:
    """A copy of the run in outputs without a store: its folder and its configuration."""
    shutil.copytree(outputs / "runs", tmp_path / "outputs" / "runs")
    folder = run_folder(tmp_path / "outputs")
    config = read_stored(folder / "config.yaml")
    tracking = replace(config.tracking, register=None)
    return folder, replace(config, outputs_dir=str(tmp_path / "outputs"), tracking=tracking)


def client_of(outputs: Path | str) -> mlflow.MlflowClient:
    """A client of the store in a folder of outputs, which MLflow uses in the test too."""
    mlflow.set_tracking_uri(f"sqlite:///{outputs}/mlflow.db")
    return mlflow.MlflowClient()


def only_run(client: mlflow.MlflowClient) -> Any:
    """The one run that is in MLflow, which is complete and has a model."""
    (run,) = logged_runs(client)
    assert run.info.status == "FINISHED"
    (model,) = client.search_logged_models([run.info.experiment_id])
    assert (model.status, model.source_run_id) == ("READY", run.info.run_id)
    return run
