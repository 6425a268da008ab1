"""Where a policy is found."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fairall
from fairall.errors import FairAllError
from tests.conftest import run_folder, typed

RUN = ["preset=quick", "model=fairlog", "seeds=2", "schedule.warm_up_epochs=2"]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory, empty_store: Callable[[Path], str]) -> Path:
    """Outputs of a run that MLflow has too, as version 1 of the model `bank`."""
    import mlflow

    folder = tmp_path_factory.mktemp("run")
    empty_store(folder / "outputs")
    assert typed(*RUN, cwd=folder).returncode == 0
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'outputs' / 'mlflow.db'}")
    mlflow.register_model(f"runs:/{parent(folder / 'outputs')}/policy", "bank")
    mlflow.set_tracking_uri(before)
    return folder / "outputs"


def parent(outputs: Path) -> str:
    """MLflow's id of the run."""
    import mlflow

    client = mlflow.MlflowClient(f"sqlite:///{outputs / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("fairall")
    (run,) = client.search_runs([experiment.experiment_id], "tags.`fairall.kind` = 'command'")
    return run.info.run_id


@pytest.mark.whole
def test_a_run_by_folder_policy_or_id(outputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run_folder(outputs)
    policy = fairall.load_policy(folder)
    people = policy.reader.example()
    monkeypatch.chdir(outputs.parent)
    for other in (
        fairall.load_policy(folder / "policy"),
        fairall.load_policy(folder.name[:6]),
        fairall.load_policy(folder.name, outputs_dir=outputs),
    ):
        np.testing.assert_array_equal(other.propensity(people), policy.propensity(people))


def test_a_run_by_its_address_in_mlflow(
    outputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    mlflow.set_tracking_uri(None)  # other tests set it
    before = mlflow.get_tracking_uri()
    policy = fairall.load_policy(run_folder(outputs))
    people = policy.reader.example()
    (model,) = (path.name for path in (outputs / "mlartifacts" / "models").iterdir())
    for address in (f"runs:/{parent(outputs)}/policy", "models:/bank/1", f"models:/{model}"):
        found = fairall.load_policy(address, outputs_dir=outputs)
        np.testing.assert_array_equal(found.propensity(people), policy.propensity(people))
    assert mlflow.get_tracking_uri() == before
    store = f"sqlite:///{outputs / 'mlflow.db'}"
    people.to_csv(tmp_path / "people.csv", index=False)
    said = typed(
        "decide", "models:/bank/1", "people.csv", "-o", "out.csv", f"tracking.uri={store}", cwd=tmp_path
    )
    assert (said.returncode, said.stderr) == (0, "")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    fairall.load_policy("models:/bank/1", outputs_dir=tmp_path)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("models:/bank/7", "models:/bank/7: .* cannot be read from sqlite:.*"),
        ("models:/nobody/1", "models:/nobody/1: .* cannot be read from sqlite:.*"),
        ("runs:/0123/policy", "runs:/0123/policy: .* cannot be read from sqlite:.*"),
        ("runs:/0123", "runs:/0123: no policy of fairall; one has an address .*"),
    ],
)
def test_what_mlflow_lacks_is_said(address: str, message: str, outputs: Path) -> None:
    with pytest.raises(FairAllError, match=f"^{message}$"):
        fairall.load_policy(address, outputs_dir=outputs)


def test_no_store_is_made_where_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(FairAllError, match="has no MLflow store"):
        fairall.load_policy("models:/bank/1", outputs_dir=tmp_path)
    assert not [*tmp_path.iterdir()]


def test_unfinished_and_damaged_runs_are_refused(outputs: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(run_folder(outputs), tmp_path / "copy")
    (folder / "policy" / "weights.safetensors").write_bytes(b"other")
    with pytest.raises(FairAllError, match=r"weights\.safetensors is damaged"):
        fairall.load_policy(folder)
    (folder / "DONE").unlink()
    with pytest.raises(FairAllError, match="unfinished: the same command goes on with it"):
        fairall.load_policy(folder)
    with pytest.raises(FairAllError, match="no such run"):
        fairall.load_policy("0000", outputs_dir=tmp_path)
