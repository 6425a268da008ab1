"""Which version goes on duty: one that is better on people whom it has not learnt from; what status says."""

from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import norm

from fairall.live.guard import Log, compared, lacking, unexpected
from reproduction.simulated_ledgers import World, held_out
from tests.conftest import succeeded
from tests.live.conftest import CASES, Make, at, people, repaid, rows

BETTER = 0.125  # what accepting up to the rank 0.5 earns more than accepting everybody


def log(n: int = 1500, propensity: object = 0.5, **columns: object) -> Log:
    """Held-out people whose outcome is bad with a probability that is the rank of their income."""
    random = np.random.default_rng(0)
    people = World(0.0, 1.0, 0.5).people(random, n)
    people["propensity"] = people.eval(str(propensity))
    for name, expression in columns.items():
        people[name] = people.eval(str(expression)).astype(float)
    return held_out(random, people, people["propensity"].to_numpy(), 0.5)


def by_rank(of: Log, most: float, more: float = 0.0) -> np.ndarray:
    """Acceptance up to a rank, which may be higher for a group, and a share for exploration."""
    rank = of.frame["income"].astype(float) - more * (of.frame["sex"] == "f")
    return 0.02 + 0.98 * (rank <= most).to_numpy(dtype=float)


@pytest.mark.parametrize("name", CASES["guard"])
def test_who_is_better(name: str) -> None:
    columns, duty, challenger, more, gap, better, why = CASES["guard"][name]
    of = log(**columns)
    told = compared(of, by_rank(of, duty), by_rank(of, challenger, more), gap)
    assert (told["better"], why in told["why"]) == (better, True), told["why"]
    if more:
        assert told["gaps"]["dpu"] == pytest.approx(more, abs=0.07)
    elif told["value"]:
        truth = 0.98 * BETTER * np.sign(duty - challenger)
        assert told["value"]["low"] < truth < told["value"]["high"] < told["value"]["low"] + 0.12


def test_what_a_comparison_lacks() -> None:
    """Of those whom the policy on duty rejects, some 70 % here, 30 outcomes of equal weight are needed."""
    few, many = (log(n, propensity="0.02 + 0.98 * (income < 0.3)") for n in (1000, 6000))
    none = log(1000, propensity="income < 0.3")
    duty = few.frame["propensity"].to_numpy()
    known = int((few.frame["label"].notna() & (duty < 1)).sum())
    needed = f"worth {known} equally weighted ones of 30): about {30_000 / known:.0f} held-out people, or a"
    assert f"{needed} larger live.explore is needed" in str(lacking(few, duty))
    assert "ones of 30): a larger live.explore" in str(lacking(none, none.frame["propensity"].to_numpy()))
    assert "are too few" in str(lacking(log(99), duty[:99]))
    assert lacking(many, many.frame["propensity"].to_numpy()) is None
    assert lacking(few, np.ones(1000)) is None  # there is nobody else to accept


def test_outcomes_that_are_unlike_what_is_expected() -> None:
    expected, luck = np.random.default_rng(0).random((2, 300))
    label = (luck < expected).astype(float)
    for before in (None, 0.5, label.mean()):
        assert unexpected(label, before, expected) is None
    assert unexpected(np.zeros(4), 0.6, None) is None  # by chance
    assert "0% are good, of those before 60% were" in str(unexpected(np.zeros(300), 0.6, expected))
    assert "are bad more often" in str(unexpected(1 - label, None, expected))


def test_a_better_version_goes_on_duty_unless_outcomes_are_doubtful(
    ledger: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    better = Mock()
    better.value.return_value = SimpleNamespace(estimate=0.3, low=0.2, high=0.4, why=None)
    better.gap.return_value.estimate = 0.0
    monkeypatch.setattr("fairall.evaluate.evaluation.compare", lambda *_, **__: better)
    own = ledger("live.promote=if_better", "live.held_out=0.5", "live.horizon=2d")
    own.outcomes(repaid(own.decide(people(0, 60)), 2))
    few = own.learn()["guard"]["why"]
    own.outcomes(repaid(own.decide(people(60, 200, 3)), 6))
    assert own.learn()["promoted"]
    own.decide(people(260, 40, 8))  # too young to be compared on
    own.outcomes(repaid(own.decide(people(300, 100, 6)), 8).assign(repaid="no"))
    told = own.learn()
    assert told["guard"]["why"].startswith("outcomes are doubtful: 0% are good, of those before ")
    held = "select count(*) from applications where held and (id <= 260 or id > 300)"
    assert rows(tmp_path / "loans.db", held) == [(told["guard"]["people"],)]
    # The second and the third comparison: all together are wrong with a probability of 5 % at most.
    widths = [call.args[1] for call in better.value.call_args_list]
    assert widths == pytest.approx(norm.isf([0.05 / 2 / (2 * 3), 0.05 / 2 / (3 * 4)]).tolist())
    own.promote(4)
    found = own.status()
    assert [one["doubt"] for one in found["versions"]] == [None, few, None, told["guard"]["why"]]
    assert [one["stands"] for one in found["versions"]] == [
        "was on duty",
        "challenger",
        "was on duty",
        "on duty",
    ]
    earns = "it earns more than the policy on duty: 30.0 [20.0, 40.0] per 100 people"
    duties = [(duty["version"], duty["why"]) for duty in found["duties"]]
    assert duties == [(1, "the first version"), (3, earns), (4, "by hand")]
    dates = {(batch["date"], batch["version"]) for batch in found["courses"]}
    assert dates == {(at(0)[:10], 1), (at(3)[:10], 1), (at(8)[:10], 3), (at(6)[:10], 3)}
    lines = own.plot("value", axes=Figure().subplots()).lines
    assert [line.get_marker() for line in lines if line.get_marker() in "ox"] == ["x", "o", "x"]


def test_status_warns_and_shows(ledger: Make, tmp_path: Path) -> None:
    own = ledger("model=greedy", "exploration=none", "live.explore=0", "live.horizon=10d")
    assert own.status()["people"] == 0
    table = people(0, 400)
    table["income"] = table["sex"].map({"female": "300", "male": "9000"})
    own.decide(table[:200])
    own.decide(table[200:].assign(time=at(20), income="3000"))
    found = own.status()
    alarms = [
        "nobody explores: those who are rejected can never be judged (live.explore)",
        "the gap between acceptance rates is above 5 for certain",
        "income has drifted",
        f"{found['overdue']} outcomes have not come within the horizon",
    ]
    assert [alarm.partition(" (3000")[0] for alarm in found["alarms"]] == alarms
    said = succeeded("live", "status", "loans.db", "--html", "page", cwd=tmp_path).stdout
    page = (tmp_path / "page" / "index.html").read_text()
    assert [part for part in alarms if part not in said or part not in page] == []
    assert (tmp_path / "page" / "figures" / "courses.png").exists()


def test_a_ledger_is_a_log(ledger: Make, tmp_path: Path) -> None:
    own = ledger("live.explore=0.2")
    own.outcomes(repaid(own.decide(people(0, 400)), 1))
    (tmp_path / "elsewhere").mkdir()
    said = succeeded("evaluate", "../loans.db", cwd=tmp_path / "elsewhere").stdout
    assert said.startswith("Evaluation of the logged decisions on loans.db\n")
    assert (tmp_path / "outputs" / "evaluations" / "loans-decisions" / "index.html").exists()
