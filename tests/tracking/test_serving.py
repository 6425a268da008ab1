"""The registered policy in MLflow's own commands, and in the registry."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

import mlflow
import numpy as np
import pandas as pd
import pytest

from fairall.policy import Policy
from tests.conftest import LOANS, MEANING, Put, refused, run_folder, succeeded, typed

pytestmark = pytest.mark.whole

RUN = [
    *"preset=quick model=fairlog seeds=2 dataset=csv".split(),
    f"dataset.path={LOANS}",
    *MEANING,
    "dataset.drop=[id,decision]",
]


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory, empty_store: Put) -> Path:
    """A run whose policy is version 1 of `loans`."""
    folder = tmp_path_factory.mktemp("served")
    empty_store(folder / "outputs")
    ended = succeeded(*RUN, "tracking.register=loans", cwd=folder)
    assert "Registered: version 1 of loans: models:/loans/1\n" in ended.stdout
    return folder / "outputs"


def versions(uri: str, name: str) -> list[Any]:
    return list(mlflow.MlflowClient(uri).search_model_versions(f"name = '{name}'"))


@contextmanager
def mlflow_command(outputs: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """`mlflow models WORDS` on the registered policy, ended with all its processes when the block ends."""
    command = [
        sys.executable,
        "-m",
        "mlflow",
        "models",
        *words,
        *"-m models:/loans/1 --env-manager local".split(),
    ]
    environment = os.environ | {
        "MLFLOW_TRACKING_URI": f"sqlite:///{outputs / 'mlflow.db'}",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        # `serve` starts uvicorn from the path, as it is in an active environment.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    with subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def asked(port: int, path: str, content: object = None) -> Any:
    data = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/{path}", data, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read().decode()


def wait_for(port: int, process: subprocess.Popen[str], seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            asked(port, "ping")
        except (URLError, ConnectionError):
            time.sleep(0.2)
        else:
            return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    pytest.fail(f"the model is not served: {process.stderr and process.stderr.read()}")


def test_served_and_predicted_probabilities_are_those_of_the_policy(outputs: Path, tmp_path: Path) -> None:
    people = pd.read_csv(LOANS).drop(columns=["repaid", "decision"])
    assert people.isna().any(axis=None)
    propensity = Policy.load(run_folder(outputs) / "policy").propensity(people)
    expected = np.vstack([propensity.mean(axis=0), propensity]).T
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    people.to_csv(tmp_path / "people.csv", index=False)

    with (
        mlflow_command(outputs, "serve", "--port", str(port)) as server,
        mlflow_command(outputs, "predict", "-i", str(tmp_path / "people.csv"), "-t", "csv") as predicting,
    ):
        out, err = predicting.communicate(timeout=120)
        assert predicting.returncode == 0, err
        found_by = pd.DataFrame(json.loads(out)["predictions"])
        assert list(found_by) == ["probability", "seed_0", "seed_1"]
        np.testing.assert_allclose(found_by, expected, atol=1e-6)

        wait_for(port, server)
        thousand = np.random.default_rng(0).integers(len(people), size=1000)
        for rows in ([7], thousand):
            for orient, key in (("split", "dataframe_split"), ("records", "dataframe_records")):
                sent = json.loads(people.iloc[rows].to_json(orient=orient))
                answer = json.loads(asked(port, "invocations", {key: sent}))
                np.testing.assert_allclose(pd.DataFrame(answer["predictions"]), expected[rows], atol=1e-6)
        texts = [
            {name: value if value is None else str(value) for name, value in person.items()}
            for person in json.loads(people.to_json(orient="records"))
        ]
        answer = json.loads(asked(port, "invocations", {"dataframe_records": texts}))
        np.testing.assert_allclose(pd.DataFrame(answer["predictions"]), expected, atol=1e-6)

        with pytest.raises(HTTPError) as refused:
            asked(port, "invocations", {"dataframe_records": [texts[0] | {"sex": "unheard of"}]})
        assert refused.value.code == 400
        assert "must be male (S = +1), female (S = " in refused.value.read().decode()


def test_a_model_of_ones_own_method_loads_where_the_method_is_not_imported(
    tmp_path: Path, empty_store: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "served_method.py").write_text(
        "from fairall.models.fairlog import FairLog\n\n\nclass Own(FairLog):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    uri = empty_store(tmp_path / "outputs")
    succeeded(*RUN, "model._target_=served_method.Own", "tracking.register=own", cwd=tmp_path)
    assert "served_method" not in sys.modules
    mlflow.set_tracking_uri(uri)
    people = pd.read_csv(LOANS).head(3)
    assert mlflow.pyfunc.load_model("models:/own/1").predict(people)["probability"].between(0, 1).all()
    del sys.modules["served_method"]
    # `sync` does not know who wrote the configuration of a run.
    succeeded("mlflow", "sync", f"tracking.uri={empty_store(tmp_path / 'elsewhere')}", cwd=tmp_path)
    models = [path.read_text() for path in tmp_path.rglob("MLmodel")]
    assert sorted("served_method" in model for model in models) == [False, True]


def test_the_model_has_the_card_and_says_what_it_gives(outputs: Path) -> None:
    mlflow.set_tracking_uri(f"sqlite:///{outputs / 'mlflow.db'}")
    folder = Path(mlflow.artifacts.download_artifacts("models:/loans/1"))
    card = (run_folder(outputs) / "model_card.md").read_text(encoding="utf-8")
    assert (folder / "artifacts" / "model_card.md").read_text(encoding="utf-8") == card
    signature = mlflow.pyfunc.load_model(str(folder)).metadata.signature
    assert signature.outputs.input_names() == ["probability", "seed_0", "seed_1"]


def test_a_diverged_seed_is_left_out_of_the_probability(outputs: Path) -> None:
    mlflow.set_tracking_uri(f"sqlite:///{outputs / 'mlflow.db'}")
    sound, model = (mlflow.pyfunc.load_model("models:/loans/1") for _ in range(2))
    policy = model.get_raw_model()
    people = pd.read_csv(LOANS).head(3)
    before = sound.predict(people)
    for weights in policy.learner.parameters():
        weights.data[0] = float("nan")
    after = model.predict(people)
    assert after["seed_0"].isna().all()
    assert not np.allclose(before["probability"], before["seed_1"])
    np.testing.assert_allclose(after["probability"], before["seed_1"], atol=1e-6)


def test_a_finished_run_is_registered_later_and_once_per_name(outputs: Path) -> None:
    uri = f"sqlite:///{outputs / 'mlflow.db'}"
    run = run_folder(outputs)
    (first,) = versions(uri, "loans")
    assert first.tags["fairall.run_id"] == run.name
    assert first.tags["fairall.model"] == "fairlog"
    assert "mean utility" in first.description
    assert mlflow.MlflowClient(uri).get_run(first.run_id).data.tags["fairall.kind"] == "command"
    for name in ("loans", "others", "others"):
        ended = succeeded(*RUN, f"tracking.register={name}", cwd=outputs.parent)
        assert "Already done" in ended.stdout
        *_, last = ended.stdout.splitlines()
        assert last == f"Registered: version 1 of {name}: models:/{name}/1"
    assert len(versions(uri, "loans")) == len(versions(uri, "others")) == 1
    assert [path for path in outputs.glob("runs/*/*/*") if path.is_dir()] == [run]
    assert "Registered" not in typed(*RUN, cwd=outputs.parent).stdout


def test_sync_logs_a_run_elsewhere_and_registers_nothing(
    outputs: Path, tmp_path: Path, empty_store: Put
) -> None:
    elsewhere = empty_store(tmp_path / "elsewhere")
    words = [f"outputs_dir={outputs}", f"tracking.uri={elsewhere}"]
    for logged, present in ((1, 0), (0, 1)):
        ended = typed("mlflow", "sync", *words, cwd=tmp_path)
        assert ended.stdout.splitlines() == [
            f"Logged {logged} run{'s' * (logged == 0)} to MLflow; {present} were already there.",
        ]
    assert versions(elsewhere, "loans") == []
    assert "repeat its command with tracking.register=NAME" in refused(
        "mlflow", "sync", *words, "tracking.register=other", cwd=tmp_path
    )


def test_a_run_without_a_model_cannot_be_registered(outputs: Path, tmp_path: Path, empty_store: Put) -> None:
    uri = empty_store(tmp_path)
    (experiment,) = mlflow.MlflowClient(uri).search_experiments(filter_string="name = 'Default'")
    name = {"fairall.run_id": run_folder(outputs).name}
    run = mlflow.MlflowClient(uri).create_run(experiment.experiment_id, tags=name).info.run_id
    mlflow.MlflowClient(uri).set_terminated(run)
    words = [f"tracking.uri={uri}", "tracking.experiment=Default", "tracking.register=loans"]
    assert "MLflow has no model of" in refused(*RUN, *words, cwd=outputs.parent)
    assert versions(uri, "loans") == []
