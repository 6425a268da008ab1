"""Logging of runs to MLflow."""

import json
import os
import shlex
import shutil
import sqlite3
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import mlflow
import mlflow.db
import numpy as np
import pandas as pd
import pytest
from mlflow.exceptions import MlflowException
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

from fairall.config.compose import places
from fairall.config.schema import Config
from fairall.config.words import override
from fairall.data.credit import MALE, raw_applicants
from fairall.decide.load import load_policy
from fairall.policy import Policy
from fairall.results.runs import load
from fairall.storage.run_folder import FILES, RunFolder
from fairall.storage.stored import read_stored
from fairall.tracking.fetch import fetch_runs, load_logged_results
from fairall.tracking.logger import log_report
from fairall.tracking.store import Store, UnreachableError, reaching, require_store
from tests.conftest import MEANING, Put, imported, logged_runs, refused, run_folder, succeeded, typed

QUICK = ["preset=quick", "schedule.warm_up_epochs=2", "evaluation.decisions=true"]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory, empty_store: Put) -> Path:
    folder = tmp_path_factory.mktemp("tracked")
    empty_store(folder / "outputs")
    assert typed(*QUICK, cwd=folder).returncode == 0
    return folder / "outputs"


@pytest.fixture
def client(outputs: Path) -> mlflow.MlflowClient:
    uri = f"sqlite:///{outputs / 'mlflow.db'}"
    mlflow.set_tracking_uri(uri)
    return mlflow.MlflowClient(uri)


def runs(client: mlflow.MlflowClient) -> tuple[Any, list[Any]]:
    """The parent run and its nested runs."""
    found = logged_runs(client)
    (parent,) = (run for run in found if "mlflow.parentRunId" not in run.data.tags)
    nested = [run for run in found if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert len(found) == 1 + len(nested)
    return parent, nested


def test_one_finished_parent_with_a_nested_run_per_seed(client: mlflow.MlflowClient) -> None:
    parent, nested = runs(client)
    assert {run.info.status for run in (parent, *nested)} == {"FINISHED"}
    assert sorted(run.data.params["seed"] for run in nested) == ["0", "1"]
    assert parent.data.params["model.alpha"] == "5.0"
    assert parent.data.tags["fairall.command"] == f"python -m fairall {' '.join(QUICK)}"
    assert parent.data.tags["fairall.dataset"] == "credit"
    assert {run.data.tags["fairall.preset"] for run in (parent, *nested)} == {"quick"}


def test_curves_are_means_over_seeds_and_measures_those_of_the_files(
    client: mlflow.MlflowClient, outputs: Path
) -> None:
    parent, nested = runs(client)
    folder = run_folder(outputs)
    table = pd.read_csv(folder / "metrics.csv")
    for name in ("utility", "effective_utility"):
        mean = table.groupby("time_step")[name].mean().dropna()
        curve = sorted(client.get_metric_history(parent.info.run_id, name), key=lambda point: point.step)
        assert [(point.step, point.value) for point in curve] == [*mean.items()]  # to the last digit
    summary = json.loads((folder / "summary.json").read_text())
    for part in ("mean", "std"):
        expected = summary["aggregate"]["mean_utility"][part]
        assert parent.data.metrics[f"summary.mean_utility.{part}"] == pytest.approx(expected)
    assert parent.data.metrics["cpu_seconds"] > 0
    for run in nested:
        (own,) = (row for row in summary["per_seed"] if str(row["seed"]) == run.data.params["seed"])
        values = {f"summary.{name}": value for name, value in own.items() if value is not None}
        del values["summary.seed"]
        assert {name: pytest.approx(value) for name, value in values.items()} == run.data.metrics


def test_the_model_has_the_means_over_seeds(client: mlflow.MlflowClient) -> None:
    parent, _ = runs(client)
    model = client.get_logged_model(parent.outputs.model_outputs[-1].model_id)
    found = {metric.key: metric.value for metric in model.metrics}
    assert found["summary.mean_utility.mean"] == parent.data.metrics["summary.mean_utility.mean"]


def test_finished_runs_come_out_of_the_store(
    client: mlflow.MlflowClient, outputs: Path, tmp_path: Path
) -> None:
    config, folder = kept_run(outputs)
    reaching(config, lambda: fetch_runs(Store(config), tmp_path))
    fetched = tmp_path / folder.relative_to(outputs / "runs")
    for name in FILES:
        assert (fetched / name).read_bytes() == (folder / name).read_bytes()
    assert load(fetched).finished > 0


def test_a_report_is_a_run_with_its_files_but_what_a_kill_left(tmp_path: Path, empty_store: Put) -> None:
    config = places([override("outputs_dir", str(tmp_path))])
    client = mlflow.MlflowClient(empty_store(tmp_path))
    report = tmp_path / "report"
    for name in ("index.html", ".index.html.abcdefgh.html", "tables/a.md", "tables/.a.md.abcdefgh.md"):
        (report / name).parent.mkdir(exist_ok=True, parents=True)
        (report / name).touch()
    log_report(config, report, "A report", "a command", metrics={"value (%)": 0.5}, parameters={"of": 7})
    (run,) = logged_runs(client)
    assert (run.info.run_name, run.info.status, run.data.tags["fairall.kind"]) == (
        "A report",
        "FINISHED",
        "report",
    )
    assert (run.data.metrics, run.data.params) == ({"value _28__25__29_": 0.5}, {"of": "7"})
    files = {item.path for place in ("", "tables") for item in client.list_artifacts(run.info.run_id, place)}
    assert files == {"index.html", "tables", "tables/a.md"}
    assert "tables/a.md" in run.data.tags["mlflow.note.content"]


def test_files_and_figures_are_artifacts(client: mlflow.MlflowClient) -> None:
    parent, _ = runs(client)
    top = {item.path for item in client.list_artifacts(parent.info.run_id)}
    assert top == set(
        """
        config.yaml metrics.csv summary.json model_card.md decisions.csv figures
    """.split()
    )
    drawn = {item.path for item in client.list_artifacts(parent.info.run_id, "figures")}
    assert drawn == {"figures/learning.png", "figures/phase1.png", "figures/latent.png"}


def test_names_of_columns_that_mlflow_does_not_take(tmp_path: Path, empty_store: Put) -> None:
    loans = (
        (Path(__file__).parents[1] / "data" / "loans.csv").read_text().replace("income", "income (€) %", 1)
    )
    (tmp_path / "loans.csv").write_text(loans)
    words = [
        *QUICK,
        *"""
            schedule.phase1_epochs=1 schedule.time_steps=4 evaluation.window=[1,4] dataset=csv
            dataset.path=loans.csv
        """.split(),
        *MEANING,
        "dataset.drop=[id]",
        "initial_policy=lenient",
        "dataset.initial_policies.score={age: 0.01}",
    ]
    uri = empty_store(tmp_path / "outputs")
    succeeded(*words, cwd=tmp_path)
    parent, _ = runs(mlflow.MlflowClient(uri))
    names = [name for name in parent.data.metrics if "income" in name]
    assert names == [
        f"summary.reconstruction_error_income _28__20ac__29_ _25_.{part}" for part in ("mean", "std")
    ]


def test_policy_is_a_model_that_loads_and_predicts(client: mlflow.MlflowClient) -> None:
    parent, _ = runs(client)
    people = raw_applicants().head(5)
    model = mlflow.pyfunc.load_model(f"runs:/{parent.info.run_id}/policy")
    predicted = model.predict(people.assign(s=people["personal_status"].isin(MALE) * 2 - 1))
    assert list(predicted.columns) == ["probability", "seed_0", "seed_1"]
    assert len(predicted) == 5
    assert ((predicted >= 0) & (predicted <= 1)).all(axis=None)


def test_logging_lists_no_installed_packages_and_ends_with_a_model_that_is_ready(
    outputs: Path, tmp_path: Path, empty_store: Put
) -> None:
    client = mlflow.MlflowClient(empty_store(tmp_path))
    code = f"""
import importlib_metadata  # by which MLflow's own flavors compare requirements with all that is installed
from dataclasses import replace
from pathlib import Path
from fairall.storage.stored import read_stored
from fairall.tracking.logger import log
importlib_metadata.packages_distributions = lambda: sys.exit("listed")
folder = Path({str(run_folder(outputs))!r})
log(folder, replace(read_stored(folder / "config.yaml"), outputs_dir={str(tmp_path)!r}))
"""
    assert imported(code, "mlflow.pyfunc.scoring_server") == ("", [])  # which tries the example
    parent, _ = runs(client)
    model = client.get_logged_model(parent.outputs.model_outputs[-1].model_id)
    assert (model.name, model.status, model.source_run_id) == ("policy", "READY", parent.info.run_id)


def test_the_model_says_what_it_takes_and_gives(client: mlflow.MlflowClient, outputs: Path) -> None:
    parent, _ = runs(client)
    model = mlflow.pyfunc.load_model(f"runs:/{parent.info.run_id}/policy")
    signature = model.metadata.signature
    assert {"age", "purpose", "s", "personal_status"} <= set(signature.inputs.input_names())
    assert signature.outputs.input_names() == ["probability", "seed_0", "seed_1"]
    example = model.input_example
    assert set(example) == set(signature.inputs.input_names()) - {"s"}
    assert model.predict(example, params={"strict": True}).shape == (2, 3)
    raw = raw_applicants()[list(example)]
    merged = example.astype(str).merge(raw.astype(str), how="inner")
    assert merged.empty, "the example is nobody of the data"
    (folder,) = outputs.glob("runs/*/*/*/policy")
    for people in (raw.head(5), raw.head(5).astype(str), raw.head(5).astype({"age": "float32"})):
        expected = Policy.load(folder).propensity(people)
        predicted = model.predict(people)
        np.testing.assert_allclose(predicted[["seed_0", "seed_1"]].T, expected, atol=1e-6)
        np.testing.assert_allclose(predicted["probability"], expected.mean(axis=0), atol=1e-6)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"age": None}, "the table lacks the column 'age' and needs it"),
        ({"age": "old"}, "column 'age', row 1: 'old' is not possible; it must be a finite number"),
        ({"number_of_credits": 1.5}, "column 'number_of_credits', row 1: 1.5 is not possible"),
        ({"telephone": "yes"}, "column 'telephone': 5 of 5 rows hold 'yes'"),
        ({"personal_status": None}, "the table lacks the sensitive attribute and needs it"),
    ],
)
def test_people_that_the_model_cannot_take_are_one_line(
    change: dict[str, Any], said: str, client: mlflow.MlflowClient
) -> None:
    parent, _ = runs(client)
    model = mlflow.pyfunc.load_model(f"runs:/{parent.info.run_id}/policy")
    people = raw_applicants().head(5).drop(columns="credit")
    for name, value in change.items():
        people = people.drop(columns=name) if value is None else people.assign(**{name: value})
    with pytest.raises(MlflowException) as caught:
        model.predict(people)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)
    assert caught.value.error_code == "INVALID_PARAMETER_VALUE"
    assert caught.value.__suppress_context__


@pytest.mark.whole
@pytest.mark.parametrize("uri", ["sqlite:////dev/null/x.db", "http://127.0.0.1:9"])
def test_training_does_without_an_mlflow_that_is_away_and_tells_it_later(
    uri: str, tmp_path: Path, empty_store: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = [*QUICK, "model=fairlog", "schedule.time_steps=5", "evaluation.window=[1,5]"]
    ended = succeeded(*short, f"tracking.uri={uri}", cwd=tmp_path)
    assert ended.stdout.count(f"Warning: tracking.uri: cannot use {uri}") == 1
    assert "MLflow: " not in ended.stdout
    assert ended.stdout.count("Results: ") == 1
    folder = run_folder(tmp_path / "outputs")
    assert (folder / "DONE").exists()
    silent = RunFolder(shutil.copytree(folder, folder.with_name("0" * 12)))
    config = read_stored(folder / "config.yaml")
    silent.write_config(replace(config, tracking=replace(config.tracking, enabled=False)))
    silent.finish()
    later = empty_store(tmp_path / "later")
    there = f"tracking.uri={later}"
    ended = typed("mlflow", "sync", there, cwd=tmp_path)
    assert (ended.returncode, ended.stderr, ended.stdout) == (
        0,
        "",
        "Logged 1 run to MLflow; 0 were already there.\n",
    )
    parent, nested = runs(mlflow.MlflowClient(later))
    assert {run.info.status for run in (parent, *nested)} == {"FINISHED"}
    assert parent.data.tags["fairall.command"].startswith(f"python -m fairall {' '.join(short[:-1])}")
    assert parent.data.metrics["cpu_seconds"] > 0
    assert (
        f"MLflow:  {uri}\n" in typed("show", folder.name, cwd=tmp_path).stdout
    )  # what `sync` does not change
    again = typed("mlflow", "sync", there, cwd=tmp_path)
    assert again.stdout == "Logged 0 runs to MLflow; 1 were already there.\n"
    assert f"made with tracking.uri={uri}: repeat that word" in refused("mlflow", "sync", cwd=tmp_path)
    with monkeypatch.context() as patched:
        patched.setenv("MLFLOW_TRACKING_URI", uri)
        assert f"cannot use {uri}" in refused("mlflow", "sync", cwd=tmp_path)


def test_the_check_of_an_address_opens_nothing(tmp_path: Path) -> None:
    for uri in (
        f"sqlite:///{tmp_path}/x.db",
        "postgresql+psycopg2://a/b",
        str(tmp_path / "x"),
        "databricks",
    ):
        require_store(Config.of_places("outputs", uri))
    assert not [*tmp_path.iterdir()]


@pytest.mark.whole
def test_a_run_without_mlflow_ends_with_one_warning_and_its_verbs_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "mlflow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mlflow", None)  # an import of it fails as where it is not installed
    words = ["model=reject_all", "dataset=synthetic", "preset=quick", "seeds=1"]
    for seed in (0, 1, 1):
        ended = succeeded(*words, f"seed={seed}", cwd=tmp_path)
        (warning,) = (line for line in ended.stdout.splitlines() if "mlflow" in line)
        assert warning.startswith("Warning: cannot import mlflow (")
        assert "pip install 'mlflow>=3,<4'" in warning
        assert "`python -m fairall mlflow sync` logs it later" in warning
    names = [path.parent.name for path in tmp_path.glob("outputs/runs/*/*/*/DONE")]
    (tmp_path / "outputs" / "mlflow.db").touch()
    (tmp_path / "people.csv").write_text("a\n1\n")
    for verb in (
        ["mlflow", "sync"],
        ["compare", *names, "--log"],
        ["decide", "models:/a/1", "people.csv", "-o", "out.csv"],
    ):
        assert "install it: pip install 'mlflow>=3,<4'" in refused(*verb, cwd=tmp_path)
    with pytest.raises(UnreachableError, match="install it"):
        load_logged_results(f"outputs_dir={tmp_path / 'outputs'}")


def kept_run(outputs: Path) -> tuple[Config, Path]:
    """Configuration and folder of the run that is there."""
    folder = run_folder(outputs)
    return replace(read_stored(folder / "config.yaml"), outputs_dir=str(outputs)), folder


def test_a_database_that_nobody_finished_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = places([override("outputs_dir", str(tmp_path))])
    (tmp_path / ".mlflow.db.killed.db").write_bytes(b"half of it")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SqlAlchemyStore, "search_experiments", interrupted)
        with pytest.raises(KeyboardInterrupt):
            reaching(config, lambda: Store(config))
    assert {path.name for path in tmp_path.iterdir()} == {"mlflow.lock"}
    assert reaching(config, lambda: Store(config).experiment)
    assert {path.name for path in tmp_path.iterdir()} == {"mlflow.lock", "mlflow.db"}


@pytest.mark.whole
def test_databases_are_copies_of_a_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def make(name: str) -> None:
        config = places([override("outputs_dir", str(tmp_path / name))])
        made = reaching(config, lambda: Store(config).client.search_experiments())
        where = {one.name: one.artifact_location for one in made}
        artifacts = (tmp_path / name / "mlartifacts").as_uri()
        assert where == {"Default": f"{artifacts}/0", "fairall": artifacts}

    make("first")
    (template,) = (tmp_path / "cache").rglob("mlflow.db")
    whole = template.read_bytes()
    assert str(tmp_path).encode() not in whole
    template.write_bytes(whole[:-1])
    make("second")
    assert len(template.read_bytes()) == len(whole)
    asked: list[str] = []
    monkeypatch.setattr(mlflow.db.upgrade, "callback", asked.append)  # makes nothing
    make("third")
    assert not asked
    monkeypatch.setenv("XDG_CACHE_HOME", os.devnull)
    make("fourth")


@pytest.mark.whole
def test_folders_of_any_name(tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a "folder" :of 100%25 #1 ü'
    folder.mkdir()
    small = ["model=fairlog", "dataset=synthetic", "preset=quick", "seeds=1", "tracking.register=loans"]
    for words in (small, small, [*small, "force=true"]):
        ended = succeeded(*words, cwd=folder)
        assert "Registered: version 1 of loans" in ended.stdout
        assert "cannot use" not in ended.stdout
    address = folder / "outputs" / "mlflow.db"
    assert f"--backend-store-uri {shlex.quote(f'sqlite:///{address}')}\n" in ended.stdout
    (run_folder(folder / "outputs") / "tracking.json").unlink()
    synced = typed("mlflow", "sync", cwd=folder)
    assert synced.stdout.endswith("Logged 0 runs to MLflow; 1 were already there.\n")
    people = load_policy(run_folder(folder / "outputs")).reader.example()
    people.to_csv(folder / "people.csv", index=False)
    decided = typed("decide", "models:/loans/1", "people.csv", "-o", "out.csv", cwd=folder)
    assert decided.stderr == ""
    assert not (folder / "mlruns").exists()


def test_a_folder_that_no_database_can_be_in_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "why?").mkdir()
    assert "with ? in its name; choose another with outputs_dir=FOLDER" in refused(
        "model=fairlog", "dataset=synthetic", "preset=quick", "seeds=1", cwd=tmp_path / "why?"
    )


@pytest.mark.whole
@pytest.mark.parametrize("name", ["feature%2Fx", "a%20b", "a b#c", "größe & 100%"])
def test_outputs_may_be_in_a_folder_of_any_name(name: str, tmp_path: Path) -> None:
    words = ["model=reject_all", "dataset=synthetic", "preset=quick", "seeds=1", f"outputs_dir={name}"]
    for further in ([], ["tracking.register=loans"]):
        ended = succeeded(*words, *further, cwd=tmp_path)
        assert "cannot use" not in ended.stdout
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with sqlite3.connect(tmp_path / name / "mlflow.db") as database:
        assert {status for (status,) in database.execute("select status from runs")} == {"FINISHED"}
        ((address,),) = database.execute("select artifact_location from logged_models").fetchall()
    model = Path(unquote(address.removeprefix("file://")))
    assert model.is_relative_to(tmp_path / name)
    kept = run_folder(tmp_path / name) / "policy" / "weights.safetensors"
    assert (model / "artifacts" / "policy" / kept.name).read_bytes() == kept.read_bytes()
    people = load_policy(kept.parent).reader.example()
    people.to_csv(tmp_path / "people.csv", index=False)
    out = ["people.csv", "-o", "out.csv", f"outputs_dir={name}"]
    assert typed("decide", "models:/loans/1", *out, cwd=tmp_path).returncode == 0
