"""Decisions of `decide` as the log of `evaluate`."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.conftest import records, succeeded, typed_line
from tests.decide.conftest import Policies, decided
from tests.test_docs import CHECKOUT, commands
from tests.test_policy import crowd

PAGE = CHECKOUT / "docs" / "decide.md"
LOG = """
    log.csv decision=past accepted=granted label=repaid positive=yes sensitive=sex propensity=chance cost=0.6
    drop=[mine,pi] --json --propensity-model logistic --outcome-model logistic --policy
""".split()


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluations without pictures, and explanations by few orders of the features, which take seconds."""
    monkeypatch.setattr("fairall.decide.explain.ORDERS", 2)
    monkeypatch.setattr("fairall.evaluate.analysis.Analysis.figure", lambda *_: None)


@pytest.mark.whole
def test_commands_of_the_page(policies: Policies, tmp_path: Path) -> None:
    people = crowd()
    people.insert(0, "id", [f"L{i:04}" for i in range(len(people))])
    people.to_csv(tmp_path / "people.csv", index=False)
    told, (saved, _) = {}, policies("model=fairlog")
    for line in commands(PAGE):
        said = typed_line(line.replace(" RUN ", f" {saved} "), tmp_path)
        assert (said.returncode, said.stderr) == (0, "")
        told[line.split()[3]] = said.stdout
        if " --draw " in line:
            accepted = pd.read_csv(tmp_path / "decisions.csv")["decision"].sum()
    assert len(commands(PAGE)) == 9
    assert f"Log: people 200, accepted {accepted}, labelled {accepted}" in told["evaluate"]


@pytest.mark.parametrize(
    ("method", "column", "draw"), [("fairlog", "pi", "--draw 7"), ("greedy", "mine", "")]
)
def test_evaluate_judges_what_decide_decides(
    method: str, column: str, draw: str, policies: Policies, tmp_path: Path
) -> None:
    granted, folder = np.random.default_rng(0).random(500) < 0.5, policies(f"model={method}")[0]
    people = crowd(500).assign(chance=0.5, past=np.where(granted, "granted", "refused"))
    people["repaid"] = people["repaid"].where(granted, None)
    people.to_csv(tmp_path / "people.csv", index=False)
    out, _ = decided(tmp_path, folder)
    people = people.assign(mine=out["decision"], pi=out["probability"])
    people.to_csv(tmp_path / "log.csv", index=False)
    ours, theirs = (
        json.loads(succeeded("evaluate", *LOG, *policy.split(), cwd=tmp_path).stdout)
        for policy in (f"{folder} {draw}", column)
    )
    one, other = ([row | {"policy": ""} for row in records(of, "value")] for of in (ours, theirs))
    assert one == other != []
    (used,) = ours["policies"]
    assert used["acceptance"] == pytest.approx(people[column].mean(), abs=1e-6)
    assert used["rule"].startswith(
        "accept with the probability, drawn with seed 7" if draw else "accept from a"
    )
