"""A store that is away, damaged, half written, or in which others keep runs."""

import os
import shlex
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fairall import load_logged_results
from fairall.config.schema import Config
from fairall.config.words import override
from fairall.decide.load import load_policy
from fairall.storage.run_folder import Origin, source_tags
from fairall.tracking.logger import log
from fairall.tracking.store import PASSWORD, USER, UnreachableError, create_database
from tests.conftest import Asked, Put, logged_runs, refused, succeeded, typed
from tests.kills import survives
from tests.tracking.conftest import SMALL, client_of, only_run

Unlogged = tuple[Path, Config]
pytestmark = pytest.mark.whole

SYNCED = "Logged {} to MLflow; {} were already there.\n"


class Store:
    """In place of MLflow's, which takes seconds to write a database in many steps."""

    def __init__(self, address: str, artifacts: str) -> None:
        self.path, self.artifacts = Path(address.removeprefix("sqlite:///")), artifacts

    def search_experiments(self) -> None:
        for text in ("", f"half of {Path(self.artifacts).name}", Path(self.artifacts).name):
            self.path.write_text(text)


def test_a_database_that_nobody_finished_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlflow.store.tracking.sqlalchemy_store.SqlAlchemyStore", Store)
    (tmp_path / "begin").mkdir()

    def work(folder: Path) -> None:
        create_database(folder / "mlflow.db")

    assert survives(work, tmp_path / "begin", tmp_path, compared=("mlflow.db",)) > 3
    assert (tmp_path / "calm" / "mlflow.db").read_text() == "mlartifacts"


def test_runs_of_others_do_not_stop_a_run(unlogged: Unlogged) -> None:
    """Weird metrics, parameters of other experiments, and malformed tags."""
    assert log(*unlogged).is_new
    client = client_of(unlogged[1].outputs_dir)
    tags = {"fairall.kind": "command", "fairall.run_id": "elsewhere"}
    other = client.create_run(only_run(client).info.experiment_id, tags=tags).info.run_id
    client.log_param(other, "model.name", "x" * 400)
    client.log_metric(other, "utility", float("inf"), timestamp=0, step=-3)
    client.set_terminated(other)
    before = str(logged_runs(client))
    assert not log(*unlogged).is_new
    assert str(logged_runs(client)) == before
    words = override("outputs_dir", unlogged[1].outputs_dir)
    assert [result.identity for result in load_logged_results(words).results] == [unlogged[0].name]
    client.set_tag(other, "fairall.run_id", "../..")
    with pytest.raises(UnreachableError, match="a tag of a run in MLflow"):
        load_logged_results(words)


def test_a_store_of_others_says_nowhere_where_files_are_sent(
    unlogged: Unlogged, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder, config), place = unlogged, f"http://127.0.0.1:{asked.port}/theirs"
    log(folder, config)
    database = Path(config.outputs_dir, "mlflow.db")
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE experiments SET artifact_location = ?", [place])
        connection.execute("DELETE FROM tags WHERE key = 'fairall.run_id'")
    connection.close()
    monkeypatch.setenv(USER, "somebody")
    monkeypatch.setenv(PASSWORD, "secret")
    with pytest.raises(UnreachableError, match=f"its files would be sent to {place}; move .*mlflow.db away"):
        log(folder, config)
    assert asked.paths == []
    # The same database is used where the user names it, and no server gets the user's password.
    config.tracking.uri = f"sqlite:///{database}"
    with pytest.raises(UnreachableError, match="403"):
        log(folder, config)
    assert asked.paths
    assert {*asked.credentials} == {""}
    assert os.environ[PASSWORD] == "secret"


def test_another_result_under_the_same_id_is_logged_anew(unlogged: Unlogged) -> None:
    """As after an edit of a file that a method reads by itself. A registered version is not taken away."""
    folder, config = unlogged
    config = replace(config, tracking=replace(config.tracking, register="loans"))
    assert log(folder, config).registered == ["Registered: version 1 of loans: models:/loans/1"]
    client = client_of(config.outputs_dir)
    first = only_run(client).info.run_id
    client.delete_tag(first, "fairall.result")  # as of a run that an earlier version logged
    assert not log(folder, config).is_new
    client.set_tag(first, "fairall.result", "another")
    assert log(folder, config).registered == ["Registered: version 2 of loans: models:/loans/2"]
    assert only_run(client).info.run_id != first
    assert load_policy("models:/loans/1", outputs_dir=config.outputs_dir).seeds == [0, 1]


def test_a_run_does_without_an_mlflow_that_is_away_and_is_logged_later(
    tmp_path: Path, empty_store: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = "http://127.0.0.1:9"
    said = succeeded(*SMALL, f"tracking.uri={uri}", cwd=tmp_path).stdout
    assert said.count(f"Warning: tracking.uri: cannot use {uri}") == 1
    assert "MLflow: " not in said
    succeeded(*SMALL, "seed=1", "tracking.enabled=false", cwd=tmp_path)
    there = f"tracking.uri={empty_store(tmp_path / 'later')}"
    for logged in ("1 run", 0), ("0 runs", 1):
        assert succeeded("mlflow", "sync", there, cwd=tmp_path).stdout == SYNCED.format(*logged)
    only_run(client_of(tmp_path / "later"))
    assert f"made with tracking.uri={uri}: repeat that word" in refused("mlflow", "sync", cwd=tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert f"cannot use {uri}" in refused("mlflow", "sync", cwd=tmp_path)


def test_a_run_without_mlflow_ends_with_one_warning_and_its_verbs_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "mlflow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mlflow", None)  # an import of it fails as where it is not installed
    for _ in range(2):
        said = succeeded(*SMALL, cwd=tmp_path).stdout
        assert said.count("Warning: cannot import mlflow (") == 1
        assert said.count("`python -m fairall mlflow sync` logs it later") == 1
    (tmp_path / "outputs" / "mlflow.db").touch()
    (tmp_path / "people.csv").write_text("a\n1\n")
    for verb in ("mlflow sync", "decide models:/a/1 people.csv -o out.csv"):
        assert "install it: pip install 'mlflow>=3,<4'" in typed(*verb.split(), cwd=tmp_path).stderr


def test_outputs_may_be_in_a_folder_of_any_name(tmp_path: Path) -> None:
    name = 'it\'s a "folder" & b#c :of 100%2F #1 größe'
    ended = succeeded(*SMALL, "tracking.register=loans", override("outputs_dir", name), cwd=tmp_path)
    assert f"--backend-store-uri {shlex.quote(f'sqlite:///{tmp_path / name}/mlflow.db')}\n" in ended.stdout
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert load_policy("models:/loans/1", outputs_dir=tmp_path / name).seeds == [0]


def test_the_source_is_that_of_the_command(
    unlogged: Unlogged, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    project = tmp_path / "project"
    subprocess.run(["git", "init", "-q", project], check=True)
    commit = "-c user.name=a -c user.email=a@example.org commit -q --allow-empty -m a"
    subprocess.run(["git", "-C", project, *commit.split()], check=True)
    monkeypatch.chdir(project)
    source = source_tags()
    assert len(source["mlflow.source.git.commit"]) == 40
    replace(Origin.read(unlogged[0]), source=source).write(unlogged[0])
    monkeypatch.chdir(tmp_path)  # where it is logged later, without a commit
    assert "mlflow.source.git.commit" not in source_tags()
    log(*unlogged)
    assert source.items() <= only_run(client_of(unlogged[1].outputs_dir)).data.tags.items()
