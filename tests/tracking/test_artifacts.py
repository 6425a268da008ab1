"""What a report reads from MLflow and leaves there, and the latent space of a real run."""

import re
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import mlflow
import numpy as np
import pandas as pd
import pytest

from fairall import load_logged_results, load_results
from fairall.config.compose import places
from fairall.report import latent_space
from fairall.results import write_page
from fairall.tracking.artifacts import log_report
from fairall.tracking.client import log_folder
from tests.conftest import typed

PAGE = Path(__file__).parents[2] / "docs" / "report.md"
WORDS = [
    "model=fairall_I_II",
    "dataset=credit",
    "preset=quick",
    "initial_policy=harsh",
    "cost.value=0.4",
    "schedule.warm_up_epochs=2",
]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory, empty_store: Callable[[Path], str]) -> Path:
    """A run of the quick preset in MLflow."""
    folder = tmp_path_factory.mktemp("tracked")
    outputs = folder / "outputs"
    empty_store(outputs)
    assert typed(*WORDS, cwd=folder).returncode == 0
    return outputs


def search(outputs: Path, words: str) -> list[mlflow.entities.Run]:
    client = mlflow.MlflowClient(f"sqlite:///{outputs / 'mlflow.db'}")
    return list(client.search_runs([client.get_experiment_by_name("fairall").experiment_id], words))


def test_the_documented_searches_find_what_they_say(outputs: Path) -> None:
    methods, costs, fair = re.findall(r"```\n(.*?)\n```", PAGE.read_text(), re.DOTALL)
    (run,) = search(outputs, "tags.`fairall.kind` = 'command'")
    measures = {name: run.data.metrics[f"summary.{name}.mean"] for name in ("mean_dpu", "effective_utility")}
    for words, is_one in (
        (methods, True),
        (methods.replace("credit", "compas"), False),
        (costs, True),
        (costs.replace("0.5", "0.4"), False),
        (fair, measures["mean_dpu"] < 0.05 and measures["effective_utility"] > 0.05),
        (re.sub("< 0.05", "< 1", fair).replace("> 0.05", "> -1"), True),
    ):
        assert [found.info.run_id for found in search(outputs, words)] == [run.info.run_id] * is_one, words
    seeds = search(outputs, "tags.`fairall.kind` = 'seed' and tags.`fairall.cost` = '0.4'")
    assert len(seeds) == 2
    assert {run.data.tags["fairall.dataset"] for run in seeds} == {"credit"}


def test_a_report_is_a_run_with_its_tables_and_figures(outputs: Path, tmp_path: Path) -> None:
    for name in ("index.html", "tables/a.csv", "figures/a.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    log_report(places([f"outputs_dir={outputs}"]), tmp_path, "report", "python -m fairall compare a b")
    (run,) = search(outputs, "tags.`fairall.kind` = 'report'")
    client = mlflow.MlflowClient(f"sqlite:///{outputs / 'mlflow.db'}")
    for folder in ("tables", "figures"):
        kept = {item.path for item in client.list_artifacts(run.info.run_id, folder)}
        assert kept == {f"{folder}/{path.name}" for path in (tmp_path / folder).iterdir()}
    assert "index.html" in {item.path for item in client.list_artifacts(run.info.run_id)}
    assert run.info.status == "FINISHED"


def test_temporary_files_that_a_kill_left_are_never_logged(tmp_path: Path) -> None:
    for name in ("index.html", ".index.html.abcdefgh.html", "tables/a.csv", "tables/.a.csv.abcdefgh.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    client = mock.Mock()
    log_folder(client, "7", tmp_path)
    log_folder(client, "7", tmp_path / "tables", "figures")
    assert [call.args for call in client.log_artifact.call_args_list] == [
        ("7", str(tmp_path / "index.html"), None),
        ("7", str(tmp_path / "tables" / "a.csv"), "tables"),
        ("7", str(tmp_path / "tables" / "a.csv"), "figures"),
    ]


def test_a_page_made_again_deletes_what_a_kill_left(tmp_path: Path) -> None:
    left = [".index.html.abcdefgh.html", "tables/.a.csv.abcdefgh.csv", "figures/.a.png.abcdefgh.png"]
    for name in left:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    write_page(tmp_path, "A page", {})
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["index.html"]


def test_from_the_store_come_the_same_results(outputs: Path) -> None:
    (theirs,), left_out = load_logged_results(f"outputs_dir={outputs}")
    (ours,), _ = load_results(outputs / "runs")
    assert left_out == []
    assert theirs.key == ours.key
    pd.testing.assert_frame_equal(theirs.steps, ours.steps)
    pd.testing.assert_frame_equal(theirs.aggregate, ours.aggregate)


def test_latent_space_of_a_run(outputs: Path) -> None:
    (run,), _ = load_results(outputs / "runs")
    space = latent_space(run)
    assert space is not None
    z, s, label = space
    assert z.shape == (150, run.config["model"]["latent_size"])
    assert set(s) == {-1.0, 1.0}
    assert set(label) == {0.0, 1.0}
    assert np.isfinite(z).all()
    (run.path / "policy" / "weights.safetensors").rename(run.path / "policy" / "gone.pt")
    assert latent_space(run) is None
