"""No user or password of an address is written, logged or printed."""

import base64
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fairall.tracking.store import PASSWORD, USER
from tests.conftest import Asked, Ended, typed

pytestmark = pytest.mark.whole

NAME, SECRET = "somebodyelse", "pa55w@rd"
GIVEN = f"{NAME}:pa55w%40rd"  # as in an address
SMALL = ["model=fairlog", "dataset=synthetic", "preset=quick", "seeds=1"]


def assert_nowhere(folder: Path, ended: list[Ended]) -> None:
    """Neither the name nor the password is in what was said, nor in any file of the folder."""
    found = {
        f"{of} of {one.args}"
        for one in ended
        for of in ("stdout", "stderr")
        if tells(getattr(one, of).encode())
    }
    files = [path for path in folder.rglob("*") if path.is_file()]
    found |= {str(path) for path in files if tells(path.read_bytes()) or tells(str(path).encode())}
    assert len(files) > 5
    assert found == set()


def tells(content: bytes) -> bool:
    return any(word.encode() in content for word in (NAME, SECRET, "pa55w%40rd", "pa55w"))


def test_a_server_gets_the_credentials_and_nobody_else_does(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, given = asked.port, asked.credentials
    address = f"http://{GIVEN}@127.0.0.1:{port}"
    basic = "Basic " + base64.b64encode(f"{NAME}:{SECRET}".encode()).decode()
    (tmp_path / "mine" / "preset").mkdir(parents=True)
    (tmp_path / "mine" / "preset" / "server.yaml").write_text(
        "# @package _global_\ndefaults: [quick]\ntracking: {uri: '${oc.env:SERVER}'}\n"
    )
    monkeypatch.setenv("SERVER", address)
    ended = []
    for words in (
        [*SMALL, f"tracking.uri={address}"],
        [*SMALL, f'tracking.uri="{address}"'],
        [
            *SMALL,
            f"tracking={{enabled: true, uri: '{address}', experiment: other, register: null}}",
            "seed=1",
        ],
        ["-cd", "mine", *SMALL, "preset=server", "seed=2"],
        ["--multirun", *SMALL, f"tracking.uri={address}", "seed=3,4"],
    ):
        given.clear()
        ended.append(typed(*words, cwd=tmp_path))
        assert ended[-1].returncode == 0, ended[-1].stderr
        assert f"cannot use http://127.0.0.1:{port} (" in ended[-1].stdout
        assert {*given} == {basic}
    assert USER not in os.environ
    ended.append(typed("mlflow", "sync", f"tracking.uri={address}", cwd=tmp_path))
    assert (ended[-1].returncode, {*given}) == (1, {basic})
    # The files have the address alone; the environment says who asks.
    given.clear()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", address)
    ended.append(typed("mlflow", "sync", cwd=tmp_path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    monkeypatch.setenv(USER, NAME)
    monkeypatch.setenv(PASSWORD, SECRET)
    ended.append(typed("mlflow", "sync", f"tracking.uri=http://127.0.0.1:{port}", cwd=tmp_path))
    assert {*given} == {basic}
    for words in (
        [f"tracking.urii={address}"],
        [address],
        [f"tracking.uri={address}{{"],
        ["--cfg", "job", f"tracking.uri={address}"],
        ["decide", "models:/x/1", "people.csv", "-o", "out.csv", f"tracking.uri={address}"],
        ["tune", "report", f"hydra.sweeper.storage=postgresql://{GIVEN}@127.0.0.1:{port}/studies"],
        ["tune", "fairlog", f"hydra.sweeper.storage=nonsense://{GIVEN}@host/x"],
        ["mlflow", "sync", f"tracking.uri=postgresql://{GIVEN}@127.0.0.1:{port}/mlflow"],
        ["mlflow", "sync", f"tracking.uri=nonsense://{GIVEN}@127.0.0.1/mlflow"],
    ):
        (tmp_path / "people.csv").write_text("a\n1\n")
        ended.append(typed(*words, cwd=tmp_path))
    assert_nowhere(tmp_path, ended)


@pytest.fixture
def mlflow_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """The port of an MLflow server, and the folder with its database and artifacts."""
    folder = tmp_path_factory.mktemp("server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        *"-m mlflow server --port".split(),
        str(port),
        "--workers",
        "1",
        "--backend-store-uri",
        f"sqlite:///{folder / 'mlflow.db'}",
        "--artifacts-destination",
        str(folder / "files"),
    ]
    with subprocess.Popen(
        command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            end = time.monotonic() + 120
            while True:
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
                    break
                except OSError:
                    assert time.monotonic() < end
                    time.sleep(0.2)
            yield port, folder
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_what_is_logged_has_no_credentials(mlflow_server: tuple[int, Path], tmp_path: Path) -> None:
    port, folder = mlflow_server
    uri = f"tracking.uri=http://{GIVEN}@127.0.0.1:{port}"
    ended = [typed(*SMALL, uri, "tracking.register=loans", cwd=tmp_path)]
    assert "Registered: version 1 of loans: models:/loans/1\n" in ended[0].stdout
    ended.append(typed(*SMALL, "tracking.enabled=false", "seed=1", cwd=tmp_path))
    names = [path.parent.name for path in tmp_path.glob("outputs/runs/*/*/*/DONE")]
    ended.append(typed("compare", *names, "--log", uri, cwd=tmp_path))
    assert [one.returncode for one in ended] == [0, 0, 0]
    assert_nowhere(tmp_path, ended)
    assert_nowhere(folder, [])
