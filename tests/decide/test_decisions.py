"""Who is accepted by `python -m fairall decide`, and what is written and printed of it."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from pytest_regressions.file_regression import FileRegressionFixture

from fairall.errors import FairAllError
from fairall.models.learner import DecisionRule
from fairall.models.rivals.greedy import Greedy
from tests.decide.additive import HERE, additive
from tests.decide.conftest import Policies, check_text, decided, made

CASES = yaml.safe_load((HERE / "cases.yaml").read_text())


@pytest.mark.parametrize(("model", "words"), [(model, words) for model in CASES for words in CASES[model]])
def test_what_is_typed_writes_and_says_this(
    model: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file_regression: FileRegressionFixture,
) -> None:
    monkeypatch.setattr("fairall.decide.writing.ROWS", 4)  # of 11
    for name in ("people.csv", "words.csv"):
        shutil.copy(HERE / name, tmp_path)
    additive(tmp_path / "run" / "policy", model)
    _, said = decided(tmp_path, "run/policy", words)
    check_text((tmp_path / "out.csv").read_text() + said, file_regression)


@pytest.mark.parametrize("policy", ["mean", "seed:2"])
def test_python_decides_as_the_command(policy: str, tmp_path: Path) -> None:
    ours = additive(tmp_path / "policy")
    people = pd.read_csv(HERE / "people.csv", skiprows=[11])  # without warnings
    people.drop(columns="decision").to_csv(tmp_path / "people.csv", index=False)
    out, _ = decided(tmp_path, "policy", f"--policy {policy}")
    assert ours.decide(people, policy=policy).tolist() == out["decision"].tolist()
    assert ours.predict(people, policy=policy).tolist() == (out["label_probability"] >= 0.5).tolist()
    for of, name in ((ours.decision_proba, "probability"), (ours.predict_proba, "label_probability")):
        np.testing.assert_allclose(of(people, policy=policy)[:, 1], out[name], atol=1e-6)


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


def test_nothing_of_a_blind_policy_depends_on_the_group(
    policies: Policies, people: pd.DataFrame, tmp_path: Path
) -> None:
    folder, _ = policies("model=fairlog", "fairness=demographic_parity", "fairness.blind=true")
    turned, found = people.replace({"sex": {"male": "female", "female": "male"}}), []
    for them in (people, turned, people.drop(columns="sex")):
        them.to_csv(tmp_path / "people.csv", index=False)
        out, said = decided(tmp_path, folder, "--reasons 3 --refer 2 --capacity 20%")
        assert "the group" not in said, "it decides nothing"
        found.append(out.drop(columns="sex", errors="ignore"))
        pd.testing.assert_frame_equal(found[-1], found[0])
    assert found[0]["probability"].nunique() > 5
    assert found[0]["decision"].sum() > 0
    assert found[0]["reasons"].notna().any()
    with pytest.raises(FairAllError, match="lacks columns that the policy reads: s or sex"):
        policies("model=fairlog")[1].propensity(people.drop(columns="sex"))
