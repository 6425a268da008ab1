"""What MLflow has of a finished run and of its policy."""

import json
import shlex
from pathlib import Path

import mlflow
import pandas as pd
import pytest

from fairall import load_logged_results
from fairall.config.compose import places
from fairall.config.schema import Config
from fairall.config.words import override
from fairall.display.format import CAUTION
from fairall.errors import FairAllError
from fairall.storage.run_folder import FILES
from fairall.tracking.fetch import download
from fairall.tracking.logger import log
from fairall.tracking.page import DESCRIPTION, NOTE_TAG, VIEW_TAG
from fairall.tracking.store import connected, experiment_of, page_address
from tests.conftest import Put, refused, run_folder, succeeded
from tests.tracking.conftest import RUN, client_of, only_run


def test_a_run_has_the_numbers_words_and_files_of_its_folder(outputs: Path) -> None:
    client, folder = client_of(outputs), run_folder(outputs)
    run = only_run(client)
    metrics, data = run.data.metrics, json.loads((folder / "summary.json").read_text())
    for part in ("mean", "std"):
        expected = data["aggregate"]["mean_utility"][part]
        assert metrics[f"summary.mean_utility.{part}"] == pytest.approx(expected)
    assert metrics["summary.reconstruction_error_income _28__20ac__29_ _25_.mean"] > 0
    assert metrics["cpu_seconds"] > 0
    curves = pd.read_csv(folder / "metrics.csv").groupby("time_step").mean()
    by_seed = pd.DataFrame(data["per_seed"]).set_index("seed").add_prefix("seeds.")
    for name in ("utility", "effective_utility", "seeds.mean_utility"):
        expected = (by_seed if name in by_seed else curves)[name].dropna()
        history = client.get_metric_history(run.info.run_id, name)
        assert {point.step: point.value for point in history} == dict(expected), name  # to the last digit

    assert run.data.params["dataset.drop"] == "['id', 'decision']"
    command = f"python -m fairall {shlex.join(RUN)} tracking.register=loans"
    tags = {"dataset": "csv", "preset": "quick", "kind": "command", "run_id": folder.name, "command": command}
    assert {f"fairall.{name}": value for name, value in tags.items()}.items() <= run.data.tags.items()
    assert run.info.run_name.endswith(f" {folder.name} ({CAUTION})")
    assert run.data.tags[NOTE_TAG] == (folder / "model_card.md").read_text(encoding="utf-8")[:8000]
    names = {item.path for place in ("", "figures") for item in client.list_artifacts(run.info.run_id, place)}
    figures = {f"figures/{path.name}" for path in (folder / "figures").iterdir()}
    assert names == {*FILES, "decisions.csv", "figures"} | figures


def test_the_view_shows_columns_that_runs_have(outputs: Path) -> None:
    client = client_of(outputs)
    run = only_run(client)
    tags = client.get_experiment(run.info.experiment_id).tags
    assert tags[NOTE_TAG] == DESCRIPTION
    state = json.loads(json.loads(tags[VIEW_TAG])["state"])
    assert len(client.search_runs([run.info.experiment_id], state["searchFilter"])) == 1
    for column in state["selectedColumns"]:
        kind, _, name = column.partition(".")
        assert name.strip("`") in getattr(run.data, kind), column


def test_descriptions_are_given_to_experiments_and_those_of_the_user_stay(
    tmp_path: Path, empty_store: Put
) -> None:
    client = mlflow.MlflowClient(empty_store(tmp_path))
    experiment = client.create_experiment("fairall", tags={NOTE_TAG: "mine"})
    config = places([override("outputs_dir", str(tmp_path))])
    with connected(config) as connection:
        assert experiment_of(connection, config) == experiment
    with pytest.raises(FairAllError, match=r"it cannot be read from .*zzz"):
        download("runs:/zzz/policy", tmp_path, config)
    tags = client.get_experiment(experiment).tags
    assert tags[NOTE_TAG] == "mine"
    assert VIEW_TAG in tags


def test_the_address_of_the_page() -> None:
    server = Config.of_places("outputs", "https://mlflow.example.org/here/")
    assert page_address(server, "3").startswith("https://mlflow.example.org/here/#/experiments/3/runs?")
    assert page_address(Config.of_places("outputs"), "3").startswith("http://127.0.0.1:5000/#/experiments/3")


def test_finished_runs_come_out_of_the_store(outputs: Path) -> None:
    (result,) = load_logged_results(override("outputs_dir", str(outputs))).results
    folder = run_folder(outputs)
    pd.testing.assert_frame_equal(result.steps, pd.read_csv(folder / "metrics.csv"), check_dtype=False)
    assert result.finished == pytest.approx((folder / "DONE").stat().st_mtime, abs=1)


def test_a_program_that_uses_mlflow_keeps_its_store_and_its_run(
    unlogged: tuple[Path, Config], tmp_path: Path, empty_store: Put
) -> None:
    uri = empty_store(tmp_path / "mine")
    mlflow.set_tracking_uri(uri)
    with mlflow.start_run() as mine:
        assert log(*unlogged).is_new
        mlflow.log_metric("mine", 1.0)
    assert mlflow.get_tracking_uri() == uri
    assert mlflow.get_run(mine.info.run_id).data.metrics == {"mine": 1.0}
    only_run(client_of(unlogged[1].outputs_dir))


def test_a_finished_run_is_registered_later_and_once_per_name(outputs: Path) -> None:
    client = client_of(outputs)
    run = only_run(client)
    for name in ("loans", "others", "others"):
        said = succeeded(*RUN, f"tracking.register={name}", cwd=outputs.parent).stdout
        assert "Already done" in said
        assert said.endswith(f"\nRegistered: version 1 of {name}: models:/{name}/1\n")
        (version,) = client.search_model_versions(f"name = '{name}'")
        assert (version.run_id, version.tags["fairall.run_id"]) == (run.info.run_id, run_folder(outputs).name)
    assert str(only_run(client)) == str(run)
    said = refused("mlflow", "sync", "tracking.register=other", cwd=outputs.parent)
    assert "repeat its command with tracking.register=NAME" in said
