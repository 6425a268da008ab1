"""No user or password of an address is written, logged or printed."""

import base64
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fairall.tracking.store import PASSWORD, USER
from tests.conftest import Asked, Ended, Put, typed
from tests.tracking.conftest import SMALL

pytestmark = pytest.mark.whole

NAME, SECRET = "somebodyelse", "pa55w@rd"
LOGIN = f"{NAME}:pa55w%40rd"  # as in an address


def assert_nowhere(folder: Path, *outputs: Ended) -> None:
    """Neither the name nor the password is in what was printed, nor in any file of the folder."""
    texts = [ended.stdout + ended.stderr for ended in outputs]
    texts += [f"{path}: {path.read_bytes()!r}" for path in folder.rglob("*") if path.is_file()]
    assert len(texts) > 15
    assert [text for text in texts if NAME in text or "pa55w" in text] == []


def test_a_server_gets_the_credentials_and_nobody_else_does(
    asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, address = f"http://127.0.0.1:{asked.port}", f"http://{LOGIN}@127.0.0.1:{asked.port}"
    basic = "Basic " + base64.b64encode(f"{NAME}:{SECRET}".encode()).decode()
    preset = tmp_path / "mine" / "preset" / "server.yaml"
    preset.parent.mkdir(parents=True)
    preset.write_text("# @package _global_\ndefaults: [quick]\ntracking: {uri: '${oc.env:SERVER}'}\n")
    (tmp_path / "people.csv").write_text("a\n1\n")
    monkeypatch.setenv("SERVER", address)
    outputs = []

    def sends(code: int, *words: str) -> None:
        asked.credentials.clear()
        outputs.append(typed(*words, cwd=tmp_path))
        assert (outputs[-1].returncode, {*asked.credentials}) == (code, {basic}), outputs[-1].stderr
        assert f"cannot use {server} (" in outputs[-1].stdout + outputs[-1].stderr

    sends(0, *SMALL, "seed=1", f"tracking={{enabled: true, uri: '{address}', experiment: a, register: null}}")
    sends(0, "-cd", "mine", *SMALL, "preset=server", "seed=2")
    sends(0, "--multirun", *SMALL, f"tracking.uri={address}", "seed=3,4")
    sends(1, "mlflow", "sync", f"tracking.uri={address}")
    # The files have the address alone; the environment says who asks.
    with monkeypatch.context() as patched:
        patched.setenv("MLFLOW_TRACKING_URI", address)
        sends(1, "mlflow", "sync")
    monkeypatch.setenv(USER, NAME)
    monkeypatch.setenv(PASSWORD, SECRET)
    sends(1, "mlflow", "sync", f"tracking.uri={server}")
    for words in (
        f"tracking.urii={address}",
        f"--cfg job tracking.uri={address}",
        f"decide models:/x/1 people.csv -o out.csv tracking.uri={address}",
        f"tune fairlog hydra.sweeper.storage=nonsense://{LOGIN}@host/x",
        f"mlflow sync tracking.uri=postgresql://{LOGIN}@127.0.0.1:{asked.port}/mlflow",
    ):
        outputs.append(typed(*words.split(), cwd=tmp_path))
    assert_nowhere(tmp_path, *outputs)


def test_what_is_logged_has_no_credentials(
    tmp_path: Path, empty_store: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = f"server --workers 1 --port {port} --backend-store-uri {empty_store(tmp_path)}"
    words += " --artifacts-destination files"
    server = subprocess.Popen(
        [sys.executable, "-m", "mlflow", *words.split()],
        cwd=tmp_path,
        env=os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},  # ten more processes
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "10")  # until it has started
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "1")
    try:
        uri = f"tracking.uri=http://{LOGIN}@127.0.0.1:{port}"
        logged = typed(*SMALL, uri, "tracking.register=loans", cwd=tmp_path / "work")
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
    assert logged.stdout.endswith("Registered: version 1 of loans: models:/loans/1\n")
    assert_nowhere(tmp_path, logged)
