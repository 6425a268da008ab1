"""Values of a ledger in money, where what an acceptance brings or costs is given by person."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from fairall.display.format import number
from fairall.live.overrides import mean_worth
from tests.conftest import succeeded
from tests.live.conftest import METHOD, Make, people, repaid

LIVE = ["live.held_out=0.4", "live.explore=0.3"]
COST = ["cost.value=0.6"]
ITS_AMOUNTS = ["dataset.gain={intercept: 0.4}", "dataset.loss={intercept: 0.6}"]
AMOUNTS = ["dataset.gain={intercept: 20, income: 0.1}", "dataset.loss={income: 0.2}"]


def test_amounts_of_the_cost_give_what_the_cost_gives(ledger: Make) -> None:
    told = []
    for name, words in (("cost", COST), ("amounts", ITS_AMOUNTS)):
        own = ledger(*METHOD, *words, *LIVE, name=name)
        own.outcomes(repaid(own.decide(people(0, 600)), 1))
        guard = own.learn()["guard"]
        told.append({**guard["value"], **guard["gaps"], **own.summary().stack()})
        assert guard["why"].endswith("in money per person" if name == "amounts" else "per 100 people")
    assert told[1] == pytest.approx(told[0], abs=1e-6)


@pytest.mark.parametrize("further", [[], ["dataset.decide_by=cost", "dataset.cost=0.7"]])
def test_a_ledger_in_money(further: list[str], ledger: Make, tmp_path: Path) -> None:
    own = ledger("model=greedy", "schedule.warm_up_epochs=2", *AMOUNTS, *further, *LIVE)
    decided = own.decide(people(0, 400).query("income != ''"))
    own.outcomes(repaid(decided, 1))
    own.learn()
    own.forget(decided["id"][decided["decision"] == 1].iloc[0])
    log = own.to_frame().dropna(subset="label")
    income, found = log["income"].astype(float), own.summary()
    worth = np.where(log["label"] == 1, 20 + 0.1 * income, -0.2 * income)
    assert found["value"].tolist() == pytest.approx(log.assign(w=worth).groupby("sex")["w"].mean(), 1e-5)
    axes = Figure().subplots()
    own.plot("value", axes=axes)
    assert axes.get_ylabel() == "difference in value (money per person)"
    said = succeeded("live", "status", "loans.db", cwd=tmp_path).stdout
    assert f"{number(found['value'].iloc[0], 1, 2)} [" in said
    said = succeeded("evaluate", "loans.db", cwd=tmp_path).stdout
    assert f"Utility per 100 people: {number(worth.sum() / (len(decided) - 1))} [" in said


def test_intervals_of_means_in_money_cover_the_truth() -> None:
    """Of 30 people some 3 could cost 20 times as much as the others, and mostly none or one of them does."""
    random, misses = np.random.default_rng(0), 0
    for _ in range(1000):
        loss, good = random.choice([1.0, 20.0], 30, p=[0.9, 0.1]), random.random(30) < 0.7
        found = mean_worth(good, np.ones(30), loss)
        misses += found is None or not found[1] <= 0.7 - 0.3 * 2.9 <= found[2]
    assert misses <= 65  # 5 %, and two standard errors
    assert mean_worth(*np.ones((3, 2))) is None
