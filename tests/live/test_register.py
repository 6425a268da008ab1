"""Versions of a ledger in MLflow's registry, where the words of a command say so."""

from pathlib import Path

import pandas as pd
import pytest

from fairall.tracking.store import PASSWORD, USER
from tests.conftest import Asked, Put, refused, run_folder, succeeded
from tests.live.conftest import METHOD, SMALL, people, repaid

WORDS = [*(word for word in SMALL if not word.startswith("tracking.")), *METHOD]
pytestmark = pytest.mark.whole


def test_versions_have_aliases_in_mlflow(tmp_path: Path, empty_store: Put) -> None:
    import mlflow

    client = mlflow.MlflowClient(empty_store(tmp_path / "outputs"))
    people(0, 100).to_csv(tmp_path / "people.csv", index=False)
    for words, said in {
        ("start", "loans.db", *WORDS): "version 1 is models:/loans@champion",
        ("learn", "loans.db"): "version 2 is models:/loans@challenger",
        ("promote", "loans.db", "2"): "version 2 is models:/loans@champion",
    }.items():
        assert said in succeeded("live", *words, "tracking.register=loans", cwd=tmp_path).stdout
        if words[0] == "start":
            succeeded("live", "decide", "loans.db", "people.csv", "-o", "decided.csv", cwd=tmp_path)
            repaid(pd.read_csv(tmp_path / "decided.csv"), 1).to_csv(tmp_path / "repaid.csv", index=False)
            succeeded("live", "outcomes", "loans.db", "repaid.csv", cwd=tmp_path)
    aliases = client.get_registered_model("loans").aliases
    assert {alias: int(version) for alias, version in aliases.items()} == {"champion": 2}


@pytest.mark.parametrize("database", [True, False])
def test_what_a_ledger_or_a_run_stores_says_nowhere_where_things_are_sent(
    database: bool, asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_store: Put
) -> None:
    """They were made with the address of a server, or of a database, and come to another user."""
    uri = f"sqlite:///{tmp_path / 'theirs.db'}" if database else f"http://127.0.0.1:{asked.port}"
    stored = [*WORDS, f"tracking.uri={uri}", "tracking.register=theirs"]
    succeeded("live", "start", "loans.db", *stored, cwd=tmp_path)
    succeeded(*stored, cwd=tmp_path)
    assert database or asked.paths
    (tmp_path / "theirs.db").unlink(missing_ok=True)
    asked.paths.clear()
    monkeypatch.setenv(USER, "somebody")
    monkeypatch.setenv(PASSWORD, "secret")
    run, mine = str(run_folder(tmp_path / "outputs")), empty_store(tmp_path / "mine")
    succeeded("live", "promote", "loans.db", "1", cwd=tmp_path)
    succeeded("live", "start", "next.db", run, cwd=tmp_path)
    assert "repeat that word" in refused("mlflow", "sync", cwd=tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mine)
    said = succeeded("live", "start", "last.db", run, "tracking.register=loans", cwd=tmp_path).stdout
    assert "version 1 is models:/loans@champion" in said
    assert asked.paths == []
    assert not (tmp_path / "theirs.db").exists()
