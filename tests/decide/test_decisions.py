"""Who is accepted by `python -m fairall decide`, and what is written and printed of it."""

import io
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from fairall.errors import FairAllError
from fairall.models.learner import DecisionRule
from fairall.models.rivals.greedy import Greedy
from tests.decide.additive import HERE, additive
from tests.decide.conftest import Policies, decided, made

CASES = yaml.safe_load((HERE / "cases.yaml").read_text())
ALWAYS = CASES.pop("always")


@pytest.mark.parametrize(("model", "words"), [(model, words) for model in CASES for words in CASES[model]])
def test_what_is_typed_adds_these_columns_and_says_this(
    model: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairall.decide.writing.ROWS", 4)  # of 11
    for name in ("people.csv", "words.csv"):
        shutil.copy(HERE / name, tmp_path)
    policy = additive(tmp_path / "run" / "policy", model)
    out, said = decided(tmp_path, "run/policy", words)
    case = CASES[model][words]
    expected = pd.read_csv(io.StringIO(case["adds"]))
    given, written = ((tmp_path / name).read_text().splitlines() for name in ("people.csv", "out.csv"))
    assert all(row.startswith(f"{cells},") for cells, row in zip(given, written, strict=True))
    assert [*out] == [*given[0].split(","), *expected]
    pd.testing.assert_frame_equal(out[[*expected]], expected, rtol=0, atol=1e-9)
    lines = [re.sub("[│ ]+", " ", line).strip() for line in said.splitlines() if line[0] not in "┏┃┡└"]
    assert [line for line in lines if line not in ALWAYS] == case["says"].splitlines()
    assert "--json" in words or {*ALWAYS} <= {*lines}
    if words in ("", "--policy seed:2"):
        by, people = words[9:] or "mean", pd.read_csv(tmp_path / "people.csv", skiprows=[11])
        out = out[:-1]  # without warnings
        assert policy.decide(people, policy=by).tolist() == out["new_decision"].tolist()
        assert policy.predict(people, policy=by).tolist() == (out["label_probability"] >= 0.5).tolist()
        for of, name in ((policy.decision_proba, "probability"), (policy.predict_proba, "label_probability")):
            both = np.stack([1 - out[name], out[name]], 1)
            np.testing.assert_allclose(of(people, policy=by), both)


@pytest.mark.parametrize("drawn", [True, False])
def test_the_threshold_is_that_of_the_rule_and_of_seeds_that_vote_a_half(drawn: bool, tmp_path: Path) -> None:
    policy = additive(tmp_path)
    policy.learner.rule = DecisionRule(0.7, drawn=drawn)
    assert policy.threshold == (0.7 if drawn else 0.5)


def test_a_policy_without_an_estimate_of_the_label_says_so(
    policies: Policies, people: pd.DataFrame, tmp_path: Path
) -> None:
    folder, policy = policies("model=accept_all")
    out, said = decided(tmp_path, folder)
    assert out["label_probability"].isna().all()
    assert "Note: model=accept_all has no estimate of the label: label_probability is empty" in said
    with pytest.raises(FairAllError, match=r"^model=accept_all has no estimate of p\(label = 1\)"):
        policy.predict_proba(people)


class Broken(Greedy):
    """Has diverged in the second seed."""

    def __init__(self, config: Any, setting: Any) -> None:
        super().__init__(config, setting)
        with torch.no_grad():
            for weights in self.parameters():
                weights[1] = torch.nan


def test_a_diverged_seed_is_left_out(people: pd.DataFrame, tmp_path: Path) -> None:
    folder, policy = made(tmp_path, "model=greedy", f"model._target_={__name__}.Broken")
    votes = policy.propensity(people)
    assert policy.diverged == [1], "though its votes are finite, since a comparison with NaN is false"
    out, said = decided(tmp_path, folder)
    np.testing.assert_allclose(out["probability"], votes[[0, 2, 3]].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(out["spread"], votes[[0, 2, 3]].std(axis=0, ddof=1), atol=1e-6)
    assert "mean of 3 seeds\n" in said
    assert "Note: left out, since they have diverged: seeds 1\n" in said
    known = "mean and median of seed:0, seed:2, seed:3"
    with pytest.raises(FairAllError, match=f"^policy seed:1: .* it has diverged; there are {known}$"):
        policy.decide(people, policy="seed:1")


@pytest.mark.parametrize("change", [{"sex": {"male": "female", "female": "male"}}, {}])
def test_nothing_of_a_blind_policy_depends_on_the_group(
    change: dict[str, dict[str, str]], policies: Policies, people: pd.DataFrame, tmp_path: Path
) -> None:
    folder, _ = policies("model=fairlog", "fairness=demographic_parity", "fairness.blind=true")
    changed = people.replace(change) if change else people.drop(columns="sex")
    found = []
    for them in (people, changed):
        them.to_csv(tmp_path / "people.csv", index=False)
        out, said = decided(tmp_path, folder, "--reasons 3 --refer 2 --capacity 20%")
        assert "the group" not in said, "it decides nothing"
        found.append(out.drop(columns="sex", errors="ignore"))
    pd.testing.assert_frame_equal(*found)
    assert found[0]["probability"].nunique() > 5
    assert found[0]["decision"].sum() > 0
    assert found[0]["reasons"].notna().any()
    with pytest.raises(FairAllError, match="lacks columns that the policy reads: s or sex"):
        policies("model=fairlog")[1].propensity(people.drop(columns="sex"))
