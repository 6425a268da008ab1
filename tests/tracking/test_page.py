"""What MLflow's page is given to show."""

import json
from pathlib import Path
from typing import Any

import mlflow
import pytest

from fairall.config.compose import places
from fairall.config.schema import Config
from fairall.config.words import override
from fairall.display.format import CAUTION
from fairall.tracking.page import DESCRIPTION, NOTE_TAG, VIEW_TAG
from fairall.tracking.store import RUN_TAG, Store, page_address, reaching
from tests.conftest import Put, logged_runs, run_folder, succeeded

RUN = ["preset=quick", "model=fairlog", "schedule.time_steps=4", "evaluation.window=[1,4]"]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory, empty_store: Put) -> Path:
    folder = tmp_path_factory.mktemp("page")
    empty_store(folder / "outputs")
    ended = succeeded(*RUN, cwd=folder)
    assert ended.stdout.endswith(f"mlflow.db\n         {page_address(Config.of_places('outputs'), '1')}\n"), (
        ended.stdout[-300:]
    )
    return folder / "outputs"


def config_of(outputs: Path, *words: str) -> Config:
    return places([override("outputs_dir", str(outputs)), *words])


def described(config: Config) -> str:
    """The id of the experiment, which is there and described."""
    return reaching(config, lambda: Store(config).experiment)


def view_of(client: mlflow.MlflowClient) -> dict[str, Any]:
    tags = client.get_experiment_by_name("fairall").tags
    return json.loads(json.loads(tags[VIEW_TAG])["state"])


def test_the_view_finds_runs_and_not_their_seeds(outputs: Path) -> None:
    client = mlflow.MlflowClient(f"sqlite:///{outputs / 'mlflow.db'}")
    state = view_of(client)
    (run,) = client.search_runs(
        [client.get_experiment_by_name("fairall").experiment_id], state["searchFilter"]
    )
    assert run.data.tags[RUN_TAG] == run_folder(outputs).name
    assert len(logged_runs(client)) == 3
    assert run.data.tags["mlflow.runName"].endswith(f" ({CAUTION})")
    assert "tags.`fairall.preset`" in state["selectedColumns"]
    for column in state["selectedColumns"]:
        kind, _, name = column.partition(".")
        assert name.strip("`") in getattr(run.data, kind), column


def test_seeds_are_listed_from_the_first_one_on(outputs: Path) -> None:
    client = mlflow.MlflowClient(f"sqlite:///{outputs / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("fairall").experiment_id
    nested = client.search_runs([experiment], "tags.`fairall.kind` = 'seed'")  # newest first
    names = [run.data.tags["mlflow.runName"] for run in nested]
    assert names == [f"seed 0 ({CAUTION})", f"seed 1 ({CAUTION})"]


def test_the_description_of_a_run_has_its_measures_warnings_and_files(outputs: Path) -> None:
    store = reaching(config_of(outputs), lambda: Store(config_of(outputs)))
    (run,) = store.search("tags.`fairall.kind` = 'command'")
    summary = json.loads((run_folder(outputs) / "summary.json").read_text())
    note = run.data.tags[NOTE_TAG]
    utility = summary["aggregate"]["effective_utility"]
    assert f"| `effective_utility` | {100 * utility['mean']:.2f} ± {100 * utility['std']:.2f} |" in note
    assert f"**Warning**: {CAUTION}." in note
    for path in ("model_card.md", "figures/learning.png"):
        assert f"#/experiments/{store.experiment}/runs/{run.info.run_id}/artifacts/{path}?" in note
        assert Path(store.client.download_artifacts(run.info.run_id, path)).is_file()


def test_descriptions_are_given_to_old_experiments_and_those_of_the_user_stay(
    tmp_path: Path, empty_store: Put
) -> None:
    client = mlflow.MlflowClient(empty_store(tmp_path))
    experiment = client.create_experiment("fairall", tags={NOTE_TAG: "mine"})
    assert described(config_of(tmp_path)) == experiment
    assert client.get_experiment(experiment).tags[NOTE_TAG] == "mine"
    assert "searchFilter" in view_of(client)
    client.set_experiment_tag(experiment, VIEW_TAG, "mine too")
    assert described(config_of(tmp_path)) == experiment
    assert client.get_experiment(experiment).tags[VIEW_TAG] == "mine too"
    other = described(config_of(tmp_path, "tracking.experiment=other"))
    assert client.get_experiment(other).tags[NOTE_TAG] == DESCRIPTION


def test_the_address_of_a_server_is_its_own() -> None:
    config = Config.of_places("outputs", "https://mlflow.example.org/here/")
    assert page_address(config, "3").startswith("https://mlflow.example.org/here/#/experiments/3/runs?")
