"""`decide --equal-rates` on small tables."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairall.policy import Policy
from tests.conftest import Ended
from tests.decide.test_command import built, decide
from tests.models.conftest import most_within, rates_of
from tests.test_policy import crowd

AMOUNTS = "dataset.gain={intercept: 5, income: 0.2}", "dataset.loss={intercept: 1, income: 0.3}"
TOWNS = "dataset.sensitive=town", "dataset.advantaged=null", "dataset.groups=[Hull,Bath,York]"


def decided(folder: Path, *words: str, n: int = 101) -> tuple[pd.DataFrame, Ended]:
    """The table of n people with the decisions of the policy in `folder`, and what was printed."""
    crowd(n).drop(columns="repaid").to_csv(folder / "people.csv", index=False)
    ended = decide(folder, "policy", *words)
    assert (ended.returncode, ended.stderr) == (0, "")
    return pd.read_csv(folder / "out.csv", keep_default_na=False), ended


def earned(policy: Policy, out: pd.DataFrame) -> np.ndarray:
    """What the acceptance of each person earns, by the estimates of the table."""
    x, _ = policy.encoded(out)
    stake, cost = (of.numpy() for of in policy.learner.setting.stake_and_cost(x))
    worth: np.ndarray = stake * (out["label_probability"].to_numpy() - cost)
    return worth


@pytest.mark.parametrize("which", ["mean", "seed:2"])
@pytest.mark.parametrize(
    "words",
    [
        ["model=greedy", "cost.value=0.45"],
        ["model=fairlog", "cost.value=0.6", "fairness=demographic_parity", "fairness.slack=0.1"],
        ["model=fairlog", "cost.value=0.5", "fairness=equal_opportunity", "fairness.slack=0"],
        ["model=greedy", *AMOUNTS],
        ["model=greedy", "cost.value=0.45", *TOWNS],
    ],
    ids=["free", "slack", "opportunity", "amounts", "towns"],
)
def test_rates_are_within_the_bound_and_nothing_within_it_earns_more(
    which: str, words: list[str], tmp_path: Path
) -> None:
    policy = built(tmp_path, *words)
    for places in (None, 30):
        out, _ = decided(tmp_path, "--equal-rates", "--policy", which, *["--capacity=30"] * bool(places))
        pi, worth = out["propensity"].to_numpy(), earned(policy, out)
        counted = out["label_probability"].to_numpy() if "opportunity" in str(words) else np.ones(len(out))
        groups = out["town" if TOWNS[0] in words else "sex"]
        rates, slack = rates_of(counted, groups.to_numpy()), 0.1 if "fairness.slack=0.1" in words else 0.0
        assert np.ptp(rates @ pi) <= slack + 1e-9
        limits = [(np.ones(len(out)), places)] if places else []
        assert pi @ worth == pytest.approx(most_within(worth, rates, slack, *limits), abs=1e-6)
        # Of each group, and of all, as many are accepted as the propensities say, up to one person.
        members = [groups == name for name in groups.unique()] + [groups != ""]
        assert all(abs((out["decision"] - pi)[of].sum()) < 1 for of in members)
        assert places is None or out["decision"].sum() <= places


def test_equal_people_are_drawn_by_lot_and_a_note_counts_them(tmp_path: Path) -> None:
    built(tmp_path, "model=greedy", "cost.value=0.01")  # it pays to accept everybody
    one = crowd(1).drop(columns="repaid")
    people = pd.concat([one.assign(sex="male")] * 10 + [one.assign(sex="female")] * 20)
    people.to_csv(tmp_path / "people.csv", index=False)
    said = decide(tmp_path, "policy", "--equal-rates", "--capacity", "9")
    out = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(out["propensity"], 0.3)
    assert out.groupby("sex")["decision"].sum().tolist() == [6, 3]
    assert (
        "Note: drawn by lot for the last places: 30 people, of whom 9 accepted; `propensity`" in said.stdout
    )


def test_reasons_are_of_the_rule_and_of_the_rejected_alone(tmp_path: Path) -> None:
    built(tmp_path, "model=greedy", "cost.value=0.45")
    for words in ([], ["--capacity", "9"]):
        out, said = decided(tmp_path, "--equal-rates", "--reasons", "2", "--refer", "7", *words)
        rejected = out["decision"] == "0"
        assert (out["reasons"] == "")[~rejected].all()
        assert (out["decision"] == "").sum() == out["referred"].sum() == 7
        # Rates are equal among those who are decided on.
        rates = out[out["referred"] == 0].astype({"propensity": float}).groupby("sex")["propensity"].mean()
        assert np.ptp(rates) < 1e-9
        if of_group := re.search(r"depends on the group: (\d+) of (\d+) rejected", said.stdout):
            assert 0 < int(of_group[1]) < int(of_group[2]) == rejected.sum()
        assert bool(of_group) == (not words), "with few places only a place was lacking"
    crowded = out["reasons"] == "the number of places"
    assert 0 < crowded.sum() < rejected.sum()
    assert out["decision"].eq("1").sum() == 9


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("accept_all", "model=accept_all has no estimate of p(label = 1) to choose"),
        (
            "greedy fairness=demographic_parity fairness.blind=true",
            "model=greedy has fairness.blind=true and may not decide by group; leave it out",
        ),
        ("greedy", "the table has nobody with S = −1 (female); leave it out"),
    ],
)
def test_what_is_refused(model: str, told: str, tmp_path: Path) -> None:
    built(tmp_path, *f"model={model}".split())
    people = crowd(9).drop(columns="repaid")
    people[people["sex"] == "male"].to_csv(tmp_path / "people.csv", index=False)
    said = decide(tmp_path, "policy", "--equal-rates").stderr
    assert said.startswith(f"fairall: --equal-rates: {told}")
    assert said.count("\n") == 1
    assert not (tmp_path / "out.csv").exists()
