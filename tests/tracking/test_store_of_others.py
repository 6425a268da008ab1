"""A store in which others keep runs, and in which killed processes or other results of a run left theirs."""

import contextlib
import getpass
import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlflow
import pytest

from fairall.config.schema import Config
from fairall.decide.load import load_policy
from fairall.storage.run_folder import RunFolder, source_tags
from fairall.storage.stored import read_stored
from fairall.tracking.fetch import fetch_runs
from fairall.tracking.logger import Logged, log
from fairall.tracking.store import PASSWORD, USER, Store, UnreachableError, reaching
from tests.conftest import Asked, Put, logged_runs, run_folder, succeeded, typed

pytestmark = pytest.mark.whole

SHORT = """
    preset=quick model=unfairlog seeds=2 schedule.warm_up_epochs=1 schedule.time_steps=4
    evaluation.window=[1,4]
""".split()
SYNCED = "Logged {} to MLflow; {} were already there.\n"


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory, empty_store: Put) -> Path:
    """A folder in which a tracked run has been made."""
    folder = tmp_path_factory.mktemp("once")
    empty_store(folder / "outputs")
    assert typed(*SHORT, cwd=folder).returncode == 0
    return folder


@pytest.fixture
def client(once: Path) -> Iterator[mlflow.MlflowClient]:
    """Of its store, which is afterwards as before."""
    database = once / "outputs" / "mlflow.db"
    uri = f"sqlite:///{database}"
    mlflow.set_tracking_uri(uri)
    client = mlflow.MlflowClient(uri)
    before = {run.info.run_id for run in logged_runs(client)}
    yield client
    for run in logged_runs(client):
        if run.info.run_id not in before:
            client.delete_run(run.info.run_id)


def kept(once: Path) -> tuple[Config, Path]:
    """Configuration and folder of the run of `once`."""
    folder = run_folder(once / "outputs")
    return replace(read_stored(folder / "config.yaml"), outputs_dir=str(once / "outputs")), folder


def log_it(once: Path) -> Logged:
    """Log the run of `once`, as its command and `mlflow sync` do."""
    config, folder = kept(once)
    return log(folder, config)


def test_runs_of_others_do_not_stop_a_run(client: mlflow.MlflowClient, once: Path, tmp_path: Path) -> None:
    """Malformed and missing tags, weird metrics, and parameters of other experiments."""
    config, folder = kept(once)
    experiment = client.get_experiment_by_name("fairall").experiment_id
    kinds: list[dict[str, str]] = [{}, {"fairall.kind": "command"}, {"fairall.run_id": "../.."}]
    made = [client.create_run(experiment, tags=tags) for tags in kinds]
    for status in ("FINISHED", "FAILED", "KILLED", "SCHEDULED"):
        made.append(client.create_run(experiment, tags=kinds[1]))
        client.update_run(made[-1].info.run_id, status=status)
    for run in made:
        client.log_param(run.info.run_id, "model.name", "x" * 400)
        for value in (float("nan"), float("inf"), -1e308):
            client.log_metric(run.info.run_id, "utility", value, timestamp=0, step=-3)
    before = {run.info.run_id: client.get_run(run.info.run_id).to_dictionary() for run in made}
    half = client.create_run(experiment, tags=kinds[1] | {"fairall.run_id": folder.name}).info.run_id
    assert not log_it(once).is_new
    assert half not in parents_of(logged_runs(client))
    assert {name: client.get_run(name).to_dictionary() for name in before} == before
    reaching(config, lambda: fetch_runs(Store(config), tmp_path / "fetched"))
    assert [path.name for path in (tmp_path / "fetched").glob("*/*/*")] == [folder.name]


def test_a_store_of_others_says_nowhere_where_files_are_sent(
    once: Path, asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = shutil.copytree(once / "outputs", tmp_path / "outputs")
    place = f"http://127.0.0.1:{asked.port}/theirs"
    with contextlib.closing(sqlite3.connect(outputs / "mlflow.db")) as database, database:
        database.execute("UPDATE experiments SET artifact_location = ?", [place])
        database.execute("DELETE FROM tags WHERE key = 'fairall.run_id'")
    config, folder = replace(kept(once)[0], outputs_dir=str(outputs)), kept(once)[1]
    monkeypatch.setenv(USER, "somebody")
    monkeypatch.setenv(PASSWORD, "secret")
    with pytest.raises(UnreachableError, match=f"its files would be sent to {place}; move .*mlflow.db away"):
        log(folder, config)
    assert asked.paths == []
    # The same database is used where the user names it, and no server gets the user's password.
    config.tracking.uri = f"sqlite:///{outputs / 'mlflow.db'}"
    with pytest.raises(UnreachableError, match="403"):
        log(folder, config)
    assert asked.paths
    assert {*asked.credentials} == {""}
    assert os.environ[PASSWORD] == "secret"


def test_an_answer_that_is_not_understood_is_a_warning(once: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unheard_of(self: Store, where: str) -> list[Any]:
        raise KeyError("mlflow.runName")

    monkeypatch.setattr(Store, "search", unheard_of)
    with pytest.raises(UnreachableError, match="KeyError"):
        log_it(once)
    ended = succeeded(*SHORT, cwd=once)
    (warning,) = (line for line in ended.stdout.splitlines() if line.startswith("Warning: tracking"))
    assert "(KeyError: 'mlflow.runName')" in warning
    assert "`python -m fairall mlflow sync` logs it later" in warning


class KilledError(BaseException):
    """In place of SIGKILL."""


def killed(*arguments: Any, **named: Any) -> None:
    raise KilledError


def assert_there_once(client: mlflow.MlflowClient, seeds: int = 2) -> Any:
    """Check that the store has one complete run with its seeds and its model, and return the run."""
    left = logged_runs(client)
    (parent,) = (run for run in left if "mlflow.parentRunId" not in run.data.tags)
    assert {run.info.status for run in left} == {"FINISHED"}
    nested = [run for run in left if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id]
    assert len(left) == 1 + len(nested) == 1 + seeds
    models = client.search_logged_models([parent.info.experiment_id])
    assert [(one.status, one.source_run_id) for one in models] == [("READY", parent.info.run_id)]
    return parent


@pytest.mark.parametrize(
    "killed_in",
    """
        create_run create_logged_model log_model_artifacts log_batch log_artifact set_terminated
    """.split(),
)
def test_what_a_kill_leaves_half_logged_is_replaced_by_the_next_command(
    killed_in: str, once: Path, tmp_path: Path, empty_store: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(once / "outputs" / "runs", tmp_path / "outputs" / "runs")
    client = mlflow.MlflowClient(empty_store(tmp_path / "outputs"))
    for _ in range(2):  # the second kill comes after a part of the first one's was deleted
        with monkeypatch.context() as patched:
            patched.setattr(f"mlflow.MlflowClient.{killed_in}", killed)
            with pytest.raises(KilledError):
                log_it(tmp_path)
    with monkeypatch.context() as patched:  # and one while the rest is deleted
        patched.setattr("mlflow.MlflowClient.delete_run", killed)
        if logged_runs(client):
            with pytest.raises(KilledError):
                log_it(tmp_path)
    assert typed("mlflow", "sync", cwd=tmp_path).stdout == SYNCED.format("1 run", 0)
    assert_there_once(client)
    assert typed("mlflow", "sync", cwd=tmp_path).stdout == SYNCED.format("0 runs", 1)


def test_neither_damage_nor_force_leaves_a_second_copy(tmp_path: Path, empty_store: Put) -> None:
    mlflow.set_tracking_uri(None)  # as if this process had not used MLflow
    client = mlflow.MlflowClient(empty_store(tmp_path / "outputs"))
    said = typed(*SHORT, "tracking.register=loans", cwd=tmp_path).stdout
    first, folder = assert_there_once(client), run_folder(tmp_path / "outputs")
    for name in ("metrics.csv", "figures/learning.png", "tracking.json"):
        (folder / name).unlink()
        assert typed(*SHORT, "tracking.register=loans", cwd=tmp_path).returncode == 0
        assert assert_there_once(client).to_dictionary() == first.to_dictionary(), name
    typed(*SHORT, "force=true", cwd=tmp_path)
    assert assert_there_once(client).info.run_id == first.info.run_id
    # Of another result under the same id, as after an edit of a file that a method reads by itself.
    summary = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").write_text(json.dumps(summary | {"notes": ["another"]}))
    RunFolder(folder).finish()
    again = typed(*SHORT, "tracking.register=loans", cwd=tmp_path).stdout
    (left,) = parents_of(logged_runs(client))
    assert left != first.info.run_id
    lines = [text.splitlines()[-1] for text in (said, again)]
    assert lines == [f"Registered: version {n} of loans: models:/loans/{n}" for n in (1, 2)]
    # A version that is in use is not taken away.
    for version in ("1", "2"):
        assert load_policy(f"models:/loans/{version}", outputs_dir=tmp_path / "outputs").seeds == [0, 1]


def test_a_run_that_an_earlier_version_logged_stays(client: mlflow.MlflowClient, once: Path) -> None:
    """It has no digest of its result; two of one id do not stay."""
    experiment, folder = client.get_experiment_by_name("fairall").experiment_id, run_folder(once / "outputs")
    (parent,) = parents_of(logged_runs(client))
    client.delete_tag(parent, "fairall.result")
    older = client.create_run(experiment, start_time=1, tags={"fairall.run_id": folder.name}).info.run_id
    client.set_terminated(older)
    assert not log_it(once).is_new
    assert parents_of(logged_runs(client)) == {parent}


def parents_of(runs: list[Any]) -> set[str]:
    return {run.info.run_id for run in runs if "mlflow.parentRunId" not in run.data.tags}


def test_the_source_is_that_of_the_command(
    once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_store: Put
) -> None:
    """Also where the run is logged later, at another commit."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]

    def commit() -> str:
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "a"], cwd=project, check=True)
        answer = subprocess.run([*git, "rev-parse", "HEAD"], cwd=project, capture_output=True, text=True)
        return answer.stdout.strip()

    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    project = tmp_path / "project"
    (project / "inside").mkdir(parents=True)
    subprocess.run([*git, "init", "-q"], cwd=project, check=True)
    monkeypatch.chdir(project)
    assert "mlflow.source.git.commit" not in source_tags()
    then = commit()
    assert typed(*SHORT, "tracking.uri=sqlite:////dev/null/x.db", cwd=project / "inside").returncode == 0
    assert commit() != then
    later = empty_store(tmp_path / "later")
    assert typed("mlflow", "sync", f"tracking.uri={later}", cwd=project / "inside").stdout
    (parent,) = (run for run in logged_runs(mlflow.MlflowClient(later)) if "fairall.run_id" in run.data.tags)
    assert {key: parent.data.tags.get(key) for key in source_tags()} == {
        "mlflow.source.name": "fairall",  # the first word of the command line, see `typed`
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": then,
        "mlflow.user": getpass.getuser(),
    }
    monkeypatch.setenv("PATH", "")  # without git
    assert "mlflow.source.git.commit" not in source_tags()
