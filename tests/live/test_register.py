"""Versions of a ledger in MLflow's registry."""

from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import Put, succeeded
from tests.live.conftest import SMALL
from tests.live.test_ledger import METHOD, people, repaid


@pytest.mark.whole
def test_versions_have_aliases_in_mlflow(tmp_path: Path, empty_store: Put) -> None:
    import mlflow

    uri = empty_store(tmp_path / "outputs")
    words = [word for word in SMALL if not word.startswith("tracking.")]
    start = ("live", "start", "loans.db", *words, *METHOD, "tracking.register=loans")
    assert "version 1 is models:/loans@champion" in succeeded(*start, cwd=tmp_path).stdout
    people(0, 100).to_csv(tmp_path / "people.csv", index=False)
    succeeded("live", "decide", "loans.db", "people.csv", "-o", "decided.csv", cwd=tmp_path)
    repaid(pd.read_csv(tmp_path / "decided.csv"), 1).to_csv(tmp_path / "repaid.csv", index=False)
    succeeded("live", "outcomes", "loans.db", "repaid.csv", cwd=tmp_path)
    assert (
        "version 2 is models:/loans@challenger" in succeeded("live", "learn", "loans.db", cwd=tmp_path).stdout
    )
    succeeded("live", "promote", "loans.db", "2", cwd=tmp_path)
    client = mlflow.MlflowClient(uri)
    aliases = client.get_registered_model("loans").aliases
    assert {alias: int(version) for alias, version in aliases.items()} == {"champion": 2}
