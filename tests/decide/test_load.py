"""Where a policy is found."""

import shutil
from collections.abc import Callable
from pathlib import Path

import mlflow
import numpy as np
import pytest

from fairall import load_policy
from fairall.errors import FairAllError
from tests.conftest import run_folder, succeeded
from tests.decide.conftest import decided

RUN = "preset=quick model=fairlog seeds=2 schedule.warm_up_epochs=2 tracking.register=bank".split()
ADDRESSES = ["models:/bank/1", "runs:/{run}/policy", "models:/{model}"]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory, empty_store: Callable[[Path], str]) -> Path:
    """Outputs of a run that MLflow has too, as version 1 of the model `bank`."""
    folder = tmp_path_factory.mktemp("run")
    empty_store(folder / "outputs")
    succeeded(*RUN, cwd=folder)
    return folder / "outputs"


def filled(address: str, outputs: Path) -> str:
    """The address with MLflow's ids of the run and of its model."""
    version = mlflow.MlflowClient(f"sqlite:///{outputs / 'mlflow.db'}").get_model_version("bank", "1")
    (model,) = (outputs / "mlartifacts" / "models").iterdir()
    return address.format(run=version.run_id, model=model.name)


@pytest.mark.whole
def test_a_policy_by_its_run_or_its_address_in_mlflow(
    outputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow.set_tracking_uri(None)  # other tests set it
    policy = load_policy(run := run_folder(outputs))
    people = policy.reader.example()
    monkeypatch.chdir(outputs.parent)
    before = mlflow.get_tracking_uri()
    for place in (run / "policy", run.name[:6], *ADDRESSES):
        found = load_policy(filled(str(place), outputs))
        np.testing.assert_array_equal(found.propensity(people), policy.propensity(people))
    assert mlflow.get_tracking_uri() == before
    store = f"sqlite:///{outputs / 'mlflow.db'}"
    people.to_csv(tmp_path / "people.csv", index=False)
    _, said = decided(tmp_path, "models:/bank/1", f"tracking.uri={store}")
    assert "Policy: fairlog models:/bank/1, mean of 2 seeds" in said
    _, said = decided(tmp_path, run)
    assert f"Policy: fairlog {run.name}, mean of 2 seeds" in said
    with pytest.raises(FairAllError, match="has no MLflow store"):
        load_policy("models:/bank/1", outputs_dir=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"people.csv", "out.csv"}, "none is made"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    load_policy("models:/bank/1", outputs_dir=tmp_path)


UNREADABLE = "models:/bank/7", "models:/nobody/1", "runs:/0123/policy", "runs:/0123"


@pytest.mark.parametrize(
    ("address", "told"),
    [
        *((address, "it cannot be read from sqlite:") for address in UNREADABLE),
        ("runs:/{run}/config.yaml", "no policy of fairall; one has an address runs:/ID/policy or"),
        ("0000", "no such run"),
    ],
)
def test_what_is_not_there_is_said(address: str, told: str, outputs: Path) -> None:
    with pytest.raises(FairAllError) as caught:
        load_policy(filled(address, outputs), outputs_dir=outputs)
    assert str(caught.value).startswith(f"{filled(address, outputs)}: {told}")


def test_an_unfinished_run_is_refused(outputs: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run_folder(outputs), tmp_path / "copy")
    (folder / "DONE").unlink()
    shutil.rmtree(folder / "policy")
    with pytest.raises(FairAllError, match="unfinished: the same command goes on with it"):
        load_policy(folder)
