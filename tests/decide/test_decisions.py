"""Who is accepted by `python -m fairall decide`, and what is written and printed of it."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit, logit

from fairall.errors import FairAllError
from fairall.models.rivals.greedy import Greedy
from fairall.policy import Policy
from tests.decide.conftest import OTHER, Policies, decided, made

COST = "cost.value=0.55"
COLUMNS = ["probability", "spread", "label_probability", "decision", "propensity"]
EVERYBODY = np.arange(30)
RULES: dict[str, dict[str, Any]] = {
    "": {},
    "--policy median": {},
    "--policy seed:2": {},
    "--threshold 0.7": {"least": 0.7},
    "--capacity 5": {"places": 5},
    "--capacity 10% --policy seed:2": {"places": 3},
    "--refer 20%": {"nearest": 6},
    "--refer 0.5-0.7 --capacity 2": {"band": (0.5, 0.7), "places": 2},
}


def by_rule(
    pi: np.ndarray,
    margin: np.ndarray,
    *,
    least: float = 0.5,
    places: int = 30,
    nearest: int = 0,
    band: tuple[float, float] = (2.0, 2.0),
) -> tuple[np.ndarray, np.ndarray]:
    """Who is accepted, and who is referred."""
    order = np.lexsort((np.abs(margin), np.abs(pi - least).round(6)))
    referred = np.isin(EVERYBODY, order[:nearest]) | ((pi >= band[0]) & (pi <= band[1]))
    wanted = (pi >= least) & ~referred
    return wanted & np.isin(EVERYBODY, np.argsort(np.where(wanted, -margin, np.inf))[:places]), referred


def scores(policy: Policy, people: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """π and the margin of each seed, from what the method has learnt, shape (E, N)."""
    x, s = policy.encoded(people)
    if not isinstance(policy.learner, Greedy):
        # The loss of fairlog has the cost, so that its score is ½ where p(ỹ = 1 | x, s) is c.
        pi = policy.propensity(people).astype(float)
        return pi, logit(pi)
    with torch.no_grad():
        odds = policy.learner.classifier.logit(x.expand(4, -1, -1), s.expand(4, -1)).double().numpy()
    return (odds >= logit(0.55)).astype(float), odds - logit(0.55)


@pytest.mark.parametrize("method", ["fairlog", "greedy"])
@pytest.mark.parametrize("words", RULES)
def test_decisions_are_those_of_the_rule_beside_the_columns_of_the_table(
    words: str, method: str, policies: Policies, people: pd.DataFrame, tmp_path: Path
) -> None:
    folder, policy = policies(f"model={method}", COST)
    pi, margin = scores(policy, people)
    label, kind = expit(margin + logit(0.55)), words.rpartition(" ")[2]
    average = {"median": np.median, "seed:2": lambda values, axis: values[2]}.get(kind, np.mean)
    accepted, referred = by_rule(average(pi, axis=0), average(margin, axis=0), **RULES[words])
    assert 0 < accepted.sum() < 30
    out, said = decided(tmp_path, folder, words)
    further = COLUMNS + ["referred"] * ("refer" in words)
    before, after = (Path(tmp_path, name).read_text().split("\n") for name in ("people.csv", "out.csv"))
    assert all(row.startswith(f"{cells},") for cells, row in zip(before[:-1], after[:-1], strict=True))
    assert [*out] == [*people, *further]
    expected = [average(pi, axis=0), pi.std(0, ddof=1), average(label, axis=0)]
    expected += [np.where(referred, np.nan, accepted)] * 2 + [referred] * ("refer" in words)
    for name, values in zip(further, expected, strict=True):
        np.testing.assert_allclose(out[name], values, atol=1e-5, err_msg=name)
    cells = re.sub("[│ ]+", " ", said)
    for group, of in {"all": people["id"] != "", "S = −1 (female)": people["sex"] == "female"}.items():
        counts = [of.sum(), accepted[of].sum(), *[referred[of].sum()] * ("refer" in words)]
        share = 100 * accepted[of].sum() / (of & ~referred).sum()
        assert f"\n {group} {' '.join(map(str, counts))} {share:.1f} % \n" in cells
    if "refer" in words:
        assert f"without a decision: {referred.sum()} of 30" in said
        assert ("they take no place" in said) == ("capacity" in words)
    if not RULES[words]:
        by = words.removeprefix("--policy ") or "mean"
        assert policy.decide(people, policy=by).tolist() == accepted.tolist()
        assert policy.predict(people, policy=by).tolist() == (expected[2] >= 0.5).astype(int).tolist()
        for proba, values in ((policy.decision_proba, expected[0]), (policy.predict_proba, expected[2])):
            both = proba(people, policy=by)
            np.testing.assert_allclose(both, np.stack([1 - values, values], 1), atol=1e-5)


def test_deterministic_policies_decide_by_their_majority(policies: Policies, people: pd.DataFrame) -> None:
    drawn = "model=fairall_I_II", "model.policy=dec", COST, "protocol.vae_start=random"
    assert policies(*drawn)[1].threshold == 0.55
    voting = policies(*drawn, "model.decision=deterministic")[1]
    votes = voting.propensity(people)
    assert set(votes.flatten()) == {0.0, 1.0}
    assert voting.threshold == 0.5
    assert voting.decide(people).tolist() == (votes.sum(axis=0) >= 2).astype(int).tolist()


@pytest.mark.parametrize(
    "words", ["--threshold 0.2", "--draw 3", "--capacity 37% --refer 7", "--draw 3 --capacity 9"]
)
def test_what_is_written_does_not_depend_on_the_size_of_parts(
    words: str, policies: Policies, people: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = set()
    for size in (7, 1000):
        monkeypatch.setattr("fairall.decide.writing.ROWS", size)
        # Everybody has the same probability, of which no digit depends on other rows.
        decided(tmp_path, policies("model=random")[0], words)
        found.add((tmp_path / "out.csv").read_bytes())
    assert len(found) == 1


def test_a_policy_without_a_score_gives_places_by_lot_and_says_so(
    policies: Policies, people: pd.DataFrame, tmp_path: Path
) -> None:
    folder, policy = policies("model=accept_all")
    out, said = decided(tmp_path, folder, "--capacity 6")
    assert (out["decision"].sum(), set(out["propensity"])) == (6, {0.2})
    assert not out["decision"][:6].all()
    assert out["label_probability"].isna().all()
    assert "Note: model=accept_all has no estimate of the label: label_probability is empty" in said
    assert "Note: drawn by lot for the last places: 30 people, of whom 6 accepted; `propensity`" in said
    with pytest.raises(FairAllError, match=r"^model=accept_all has no estimate of p\(label = 1\)"):
        policy.predict_proba(people)


def test_a_diverged_seed_is_left_out(people: pd.DataFrame, tmp_path: Path) -> None:
    def broken(config: Any, setting: Any) -> Greedy:
        learner = Greedy(config, setting)
        with torch.no_grad():
            for weights in learner.parameters():
                weights[1] = torch.nan
        return learner

    folder, policy = made(tmp_path, "model=greedy", method=broken)
    votes = policy.propensity(people)
    assert np.isfinite(votes).all(), "a comparison with NaN is false, as if everybody were rejected"
    assert policy.diverged == [1]
    out, said = decided(tmp_path, folder)
    np.testing.assert_allclose(out["probability"], votes[[0, 2, 3]].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(out["spread"], votes[[0, 2, 3]].std(axis=0, ddof=1), atol=1e-6)
    assert "mean of 3 seeds\n" in said
    assert "Note: left out, since they have diverged: seeds 1\n" in said
    known = "mean and median of seed:0, seed:2, seed:3"
    with pytest.raises(FairAllError, match=f"^policy seed:1: .* it has diverged; there are {known}$"):
        policy.decide(people, policy="seed:1")


def test_reasons_name_features_and_a_note_counts_those_whom_the_group_decided(
    policies: Policies, people: pd.DataFrame, tmp_path: Path
) -> None:
    folder, policy = policies("model=greedy", COST)
    out, said = decided(tmp_path, folder, "--reasons 2 --refer conflict:3")
    rejected = out["decision"] == 0
    named = {reason for text in out["reasons"].dropna() for reason in text.split("; ")}
    assert named <= {"income", "children", "owner", "town", "rooms"}
    assert 3 < out["reasons"].notna().sum() <= rejected.sum() < 27
    assert out["reasons"][~rejected].isna().all()
    changed = (policy.decide(people.replace({"sex": OTHER})) == 1) & rejected
    assert changed.any()
    told = f"{changed.sum()} of {rejected.sum()} rejected people would be accepted in another one"
    assert f"Note: the rule depends on the group: {told}" in said
    assert "Warning: the group may be no lawful reason" in said


@pytest.mark.parametrize("change", ["other sex", "no sex"])
def test_nothing_of_a_blind_policy_depends_on_the_group(
    change: str, policies: Policies, people: pd.DataFrame, tmp_path: Path
) -> None:
    bound = "fairness=demographic_parity", "fairness.blind=true"
    folder, policy = policies("model=fairlog", *bound)
    changed = people.replace({"sex": OTHER}) if change == "other sex" else people.drop(columns="sex")
    for of in (policy.encoded_propensity, policy.encoded_margin, policy.encoded_label_probability):
        one, same = (of(*policy.encoded(them)) for them in (people, changed))
        assert len(np.unique(one)) > 10
        np.testing.assert_array_equal(one, same)
    for words in ("", "--capacity 20%"):
        found = []
        for them in (people, changed):
            them.to_csv(tmp_path / "people.csv", index=False)
            out, said = decided(tmp_path, folder, f"--reasons 3 --refer 2 {words}")
            assert "the group" not in said, "it decides nothing"
            found.append(out.drop(columns="sex", errors="ignore"))
        pd.testing.assert_frame_equal(*found)
    assert found[0]["decision"].sum() > 0
    assert found[0]["reasons"].notna().any()
    with pytest.raises(FairAllError, match="lacks columns that the policy reads: s or sex"):
        policies("model=fairlog", COST)[1].propensity(people.drop(columns="sex"))
