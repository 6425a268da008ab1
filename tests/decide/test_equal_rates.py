"""What `decide --equal-rates` accepts: the best of all decisions within the bound."""

from pathlib import Path

import numpy as np
import pytest

from tests.decide.conftest import Policies, decided
from tests.models.conftest import most_within, rates_of
from tests.test_policy import crowd

METHODS = [
    "model=greedy cost.value=0.45",
    "model=fairlog cost.value=0.6 fairness=demographic_parity fairness.slack=0.1",
    "model=fairlog cost.value=0.5 fairness=equal_opportunity fairness.slack=0",
    "model=greedy dataset.gain={intercept:5,income:0.2} dataset.loss={intercept:1,income:0.3}",
    "model=greedy cost.value=0.45 dataset.sensitive=town dataset.advantaged=null "
    "dataset.groups=[Hull,Bath,York]",
]


@pytest.mark.parametrize("words", ["", "--policy seed:2 --capacity 30", "--capacity 30 --refer 7"])
@pytest.mark.parametrize("method", METHODS)
def test_rates_are_within_the_bound_and_nothing_within_it_earns_more(
    method: str, words: str, policies: Policies, tmp_path: Path
) -> None:
    folder, policy = policies(*method.split())
    crowd(101).drop(columns="repaid").to_csv(tmp_path / "people.csv", index=False)
    out, _ = decided(tmp_path, folder, f"--equal-rates {words}")
    out = out.dropna()  # of those who are decided on
    assert len(out) == 101 - 7 * ("refer" in words)
    stake, cost = (of.numpy() for of in policy.learner.setting.stake_and_cost(policy.encoded(out)[0]))
    pi, p = out["propensity"].to_numpy(), out["label_probability"].to_numpy()
    counted, worth = p if "equal_opportunity" in method else np.ones(len(out)), stake * (p - cost)
    groups = out["town" if "town" in method else "sex"].to_numpy()
    rates, slack = rates_of(counted, groups), 0.1 if "fairness.slack=0.1" in method else 0.0
    assert np.ptp(rates @ pi) <= slack + 1e-9
    limits = [(np.ones(len(out)), 30)] if "capacity" in words else []
    assert pi @ worth == pytest.approx(most_within(worth, rates, slack, *limits), abs=1e-6)
    # Of each group, and of all, as many are accepted as the propensities say, up to one person.
    members = [groups == name for name in {*groups}] + [groups != ""]
    assert all(abs((out["decision"] - pi)[of].sum()) < 1 for of in members)
    assert not limits or out["decision"].sum() <= 30
