"""A store in which others keep runs, and in which killed processes left a part of theirs."""

import getpass
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest
from mlflow.data import get_source
from mlflow.entities import Dataset
from omegaconf import OmegaConf

from fairall.data.load import load_dataset
from fairall.tracking.logger import data_source
from fairall.tracking.outbox import Outbox
from fairall.tracking.store import Store, UnreachableError, fetch_runs, reaching, source_tags
from tests.conftest import run_folder, typed

pytestmark = pytest.mark.whole

SHORT = [
    "preset=quick", "model=unfairlog", "seeds=2", "schedule.warm_up_epochs=1", "schedule.time_steps=4",
    "evaluation.window=[1,4]",
]  # fmt: skip
HOST = socket.gethostname()
Put = Callable[[Path], str]


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
    before = {run.info.run_id for run in active(client)}
    yield client
    for run in active(client):
        if run.info.run_id not in before:
            client.delete_run(run.info.run_id)


def active(client: mlflow.MlflowClient) -> list[Any]:
    return list(client.search_runs([client.get_experiment_by_name("fairall").experiment_id]))


def kept(once: Path) -> tuple[dict[str, Any], Path]:
    """Configuration and folder of the run of `once`."""
    folder = run_folder(once / "outputs")
    plain: Any = OmegaConf.to_container(OmegaConf.load(folder / "config.yaml"))
    return plain | {"outputs_dir": str(once / "outputs")}, folder


PROCESSES = [
    f"{HOST}:x", f"{HOST}:", HOST, ":", "", f"{HOST}:-1", f"{HOST}:{10**30}", f"{HOST}:³", f"{HOST}:1.5",
]  # fmt: skip


def test_runs_of_others_do_not_stop_a_run(client: mlflow.MlflowClient, once: Path, tmp_path: Path) -> None:
    """Malformed and missing tags, weird metrics, and parameters of other experiments."""
    config, folder = kept(once)
    experiment = client.get_experiment_by_name("fairall").experiment_id
    ours = {"fairall.run_id": folder.name, "fairall.kind": "command"}
    made = [client.create_run(experiment, tags={"fairall.process": process}) for process in PROCESSES]
    made += [client.create_run(experiment, tags=tags) for tags in ({}, ours, {"fairall.run_id": "../.."})]
    for status in ("FINISHED", "FAILED", "KILLED", "SCHEDULED"):
        made.append(client.create_run(experiment, tags=ours))
        client.update_run(made[-1].info.run_id, status=status)
    for run in made:
        client.log_param(run.info.run_id, "model.name", "x" * 400)
        for value in (float("nan"), float("inf"), -1e308):
            client.log_metric(run.info.run_id, "utility", value, timestamp=0, step=-3)
    with Outbox(config, tmp_path / folder.name, pytest.fail).recording("a command"):
        pass
    ended = typed(*SHORT, "force=true", "tracking.register=mine", cwd=once)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Warning: tracking" not in ended.stdout
    assert ended.stdout.splitlines()[-1].startswith("Registered: version 1 of mine")
    closed = [client.get_run(run.info.run_id).info.status for run in made[: len(PROCESSES)]]
    assert closed == ["KILLED" if process.endswith("0" * 30) else "RUNNING" for process in PROCESSES]
    fetch_runs(config, tmp_path / "fetched")
    assert [path.name for path in (tmp_path / "fetched").glob("*/*/*")] == [folder.name]


def test_a_run_deleted_meanwhile_does_not_stop_another(
    client: mlflow.MlflowClient, once: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config, folder = kept(once)
    experiment = client.get_experiment_by_name("fairall").experiment_id
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    client.create_run(experiment, tags={"fairall.process": f"{HOST}:{gone.pid}"})
    original = Store.search

    def deleted_then(self: Store, where: str) -> Iterator[Any]:
        for run in list(original(self, where)):
            if run.info.status == "RUNNING":
                self.client.delete_run(run.info.run_id)
            yield run

    monkeypatch.setattr(Store, "search", deleted_then)
    with Outbox(config, tmp_path / folder.name, pytest.fail).recording("a command"):
        pass


def test_an_answer_that_is_not_understood_is_a_warning(
    once: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config, folder = kept(once)

    def unheard_of(self: Store, where: str) -> Iterator[Any]:
        raise KeyError("mlflow.runName")

    monkeypatch.setattr(Store, "search", unheard_of)
    said: list[str] = []
    with Outbox(config, tmp_path / folder.name, said.append).recording("a command"):
        pass
    (warning,) = said
    assert "(KeyError: 'mlflow.runName')" in warning
    assert "The run goes on without" in warning
    with pytest.raises(UnreachableError, match="KeyError"):
        reaching(config, lambda: Store(config))


class KilledError(BaseException):
    """In place of SIGKILL."""


def killed(*arguments: Any, **named: Any) -> None:
    raise KilledError


def of_a_dead_process(client: mlflow.MlflowClient, parents: set[str]) -> None:
    """Let parent runs be as a killed process leaves them; an exception lets MLflow close them."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for parent in parents:
        client.update_run(parent, status="RUNNING")
        client.set_tag(parent, "fairall.process", f"{HOST}:{gone.pid}")


def parents_of(runs: list[Any]) -> set[str]:
    return {run.info.run_id for run in runs if "mlflow.parentRunId" not in run.data.tags}


@pytest.mark.parametrize(
    ("killed_in", "models_then"),
    [
        ("mlflow.MlflowClient.log_inputs", ["READY"]),
        ("mlflow.models.model.Model.save", ["PENDING", "PENDING", "READY"]),
    ],
)
def test_what_a_kill_leaves_half_logged_is_deleted_by_the_next_command(
    killed_in: str, models_then: list[str], tmp_path: Path, empty_store: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = mlflow.MlflowClient(empty_store(tmp_path / "outputs"))
    assert typed(*SHORT, cwd=tmp_path).returncode == 0
    first = parents_of(active(client))
    experiment = client.get_experiment_by_name("fairall").experiment_id
    half: set[str] = set()
    for _ in range(2):  # the second one takes the place of the first one in the folder
        with monkeypatch.context() as patched:
            patched.setattr(killed_in, killed)
            with pytest.raises(KilledError):
                typed(*SHORT, "force=true", cwd=tmp_path)
        half |= parents_of(active(client)) - first
        if len(half) == 1:
            # As a version left it that did not delete them.
            monkeypatch.setattr(Store, "delete", lambda store, run: None)
    monkeypatch.undo()
    of_a_dead_process(client, half)
    assert len(half) == 2
    assert len(active(client)) == 3 * (1 + 2)
    assert sorted(model.status for model in client.search_logged_models([experiment])) == models_then
    assert typed(*SHORT, "force=true", cwd=tmp_path).returncode == 0
    left = active(client)
    assert {run.info.status for run in left} == {"FINISHED"}
    parents = parents_of(left)
    assert len(parents) == 2
    assert parents & half == set()
    seeds = [run.data.tags["mlflow.parentRunId"] for run in left if run.info.run_id not in parents]
    assert sorted(seeds) == sorted([*parents, *parents])
    models = client.search_logged_models([experiment])
    assert {model.status for model in models} == {"READY"}
    assert {model.source_run_id for model in models} == parents


def test_the_data_are_an_input_of_the_run(client: mlflow.MlflowClient, once: Path) -> None:
    (parent,) = (run for run in active(client) if run.data.tags.get("fairall.kind") == "command")
    (data,) = parent.inputs.dataset_inputs
    assert (data.dataset.name, len(data.dataset.digest)) == ("credit", 36)
    assert load_dataset("credit").prepare().fingerprint().startswith(data.dataset.digest)
    assert {tag.key: tag.value for tag in data.tags} == {"mlflow.data.context": "training"}
    source = get_source(data.dataset)
    assert source.to_dict() == {"tags": {"mlflow.source.name": "fairall.data.credit.Credit"}}


@pytest.mark.parametrize(
    ("node", "kind", "content"),
    [
        ({"path": "loans.csv"}, "local", {"uri": "loans.csv"}),
        ({"raw_file": "raw.csv", "download": {"url": "https://host/data.csv"}}, "local", {"uri": "raw.csv"}),
        (
            {"raw_file": None, "download": {"url": "https://me:secret@host:8/data.csv?a=1"}},
            "http",
            {"url": "https://host:8/data.csv?a=1"},
        ),
        ({"raw_file": None, "download": {"url": None}}, "code", {"tags": {"mlflow.source.name": "a.B"}}),
    ],
)
def test_sources_of_data_are_those_of_mlflow(
    node: dict[str, Any], kind: str, content: dict[str, Any]
) -> None:
    given, source = data_source({"_target_": "a.B", **node})
    assert (given, source) == (kind, content)
    data = Dataset("name", "digest", given, json.dumps(source))
    assert get_source(data).to_dict() == content


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
    (parent,) = (run for run in active(mlflow.MlflowClient(later)) if "fairall.run_id" in run.data.tags)
    assert {key: parent.data.tags.get(key) for key in source_tags()} == {
        "mlflow.source.name": "fairall",  # the first word of the command line, see `typed`
        "mlflow.source.type": "LOCAL",
        "mlflow.source.git.commit": then,
        "mlflow.user": getpass.getuser(),
    }
    monkeypatch.setenv("PATH", "")  # without git
    assert "mlflow.source.git.commit" not in source_tags()
