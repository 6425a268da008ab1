"""Which version goes on duty: one that is better on people whom it has not learnt from."""

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import gettempdir

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure
from scipy.stats import norm

from fairall import Ledger
from fairall.evaluate.estimated.estimates import Interval
from fairall.live import guard, page
from fairall.live.guard import LEAST, NAMES, Log, compared, lacking, unexpected
from fairall.live.record import record
from fairall.live.status import frames, sentences
from tests.conftest import refused, succeeded
from tests.live.conftest import at
from tests.live.test_ledger import METHOD, people, repaid

COST = 0.5


def log(seed: int, n: int = 1500) -> Log:
    """People of a score, decided on by a coin; who has a high score repays, of either group."""
    random = np.random.default_rng(seed)
    score, group = random.random(n), random.choice(["f", "m"], n)
    accepted, good = random.random(n) < 0.5, random.random(n) < score
    frame = pd.DataFrame({"score": score.astype(str), "sex": group, "decision": accepted.astype(int)})
    frame["label"] = np.where(accepted, good, np.nan)
    frame = frame.assign(propensity=0.5, version=1, time=1, id=[f"P{k}" for k in range(n)])
    return Log(frame, {name: name for name in NAMES} | {"group": "sex"}, pd.DataFrame(), COST)


def by_score(of: Log, least: float, less_for_f: float = 0.0) -> np.ndarray:
    """Acceptance from a score on, which may be lower for a group, and a share for exploration."""
    limit = least - less_for_f * (of.frame["sex"] == "f")
    return 0.02 + 0.98 * (of.frame["score"].astype(float) >= limit).to_numpy(dtype=float)


def test_who_is_better_is_better() -> None:
    of = log(0)
    told = compared(of, by_score(of, 0.0), by_score(of, 0.5), 0.2)
    assert told["better"], told["why"]
    assert 0 < told["value"]["low"] < 0.125 < told["value"]["high"]  # the truth
    assert "it earns more than the policy on duty" in told["why"]


def test_who_is_worse_stays_a_challenger() -> None:
    of = log(0)
    told = compared(of, by_score(of, 0.5), by_score(of, 0.0), 0.2)
    assert not told["better"]
    assert told["value"]["high"] < 0
    assert "it may earn less than the policy on duty" in told["why"]


def test_who_is_better_and_less_fair_stays_a_challenger() -> None:
    of = log(0)
    told = compared(of, by_score(of, 0.0), by_score(of, 0.6, less_for_f=0.3), 0.1)
    assert not told["better"]
    assert told["value"]["low"] > 0
    assert "the gap between acceptance rates grows by" in told["why"]
    assert told["gaps"]["dpu"] == pytest.approx(0.3, abs=0.07)
    assert compared(of, by_score(of, 0.0), by_score(of, 0.6, less_for_f=0.3), 0.9)["better"]


def test_few_people_and_no_difference_are_no_reason() -> None:
    of = log(0, LEAST - 1)
    assert "are too few" in compared(of, by_score(of, 0.0), by_score(of, 0.5), 0.2)["why"]
    of = log(0)
    assert "decides as the policy on duty" in compared(of, by_score(of, 0.5), by_score(of, 0.5), 0.2)["why"]


def test_people_whom_nobody_accepted_are_no_evidence() -> None:
    of = log(0)
    of.frame["decision"] = ((of.frame["decision"] == 1) & (of.frame["score"].astype(float) > 0.5)).astype(int)
    of.frame["label"] = of.frame["label"].where(of.frame["decision"] == 1)
    of.frame["propensity"] = np.where(of.frame["score"].astype(float) > 0.5, 0.5, 0.0)
    told = compared(of, by_score(of, 0.9), by_score(of, 0.0), 0.2)
    assert not told["better"]
    assert told["value"] is None


@pytest.mark.parametrize("seed", range(3))
def test_everybody_was_accepted(seed: int) -> None:
    of = log(seed)
    of.frame["decision"], of.frame["propensity"] = 1, 1.0
    random = np.random.default_rng(100 + seed)
    of.frame["label"] = (random.random(len(of.frame)) < of.frame["score"].astype(float)).astype(float)
    told = compared(of, by_score(of, 0.0), by_score(of, 0.5), 0.2)
    assert told["better"], told["why"]
    assert told["value"]["low"] < 0.98 * 0.125 < told["value"]["high"]  # the truth
    assert told["value"]["high"] - told["value"]["low"] < 0.05
    unfair = compared(of, by_score(of, 0.0), by_score(of, 0.6, less_for_f=0.3), 0.1)
    assert unfair["gaps"]["dpu"] == pytest.approx(0.3, abs=0.07)
    assert not unfair["better"]


@pytest.mark.parametrize("number", [1, 4])
def test_intervals_are_those_of_evaluate_at_the_level_of_the_comparison(number: int) -> None:
    of = log(0)
    first, second = by_score(of, 0.0), by_score(of, 0.5)
    shown = compared(of, first, second, 0.2, number)["value"]
    difference = guard._comparison(of, first, second).difference("dr")
    level = 0.05 / (number * (number + 1))
    value, low, high = difference.ends(norm.isf(level / 2))
    assert (shown["estimate"], shown["low"], shown["high"]) == pytest.approx((value, low, high))
    assert value - low > norm.isf(level / 2) * difference.error


def test_levels_of_all_comparisons_add_up_to_five_percent(monkeypatch: pytest.MonkeyPatch) -> None:
    levels: list[float] = []

    class Comparison:
        def value(self, _: str, k: float) -> Interval:
            levels.append(2 * norm.sf(k))
            return Interval(0.1, 0.0, 0.2)

        def gap(self, *_: str) -> Interval:
            return Interval(0.0, -0.1, 0.1)

    monkeypatch.setattr(guard, "_comparison", lambda *_: Comparison())
    of = log(0)
    first, second = by_score(of, 0.0), by_score(of, 0.5)
    for number in range(1, 101):
        assert compared(of, first, second, 0.2, number)["better"]
    assert 0.0495 < sum(levels) < 0.05
    assert levels[:2] == pytest.approx([0.025, 0.05 / 6])


def rare(seed: int, n: int = 1000, good: float = 0.94, explore: float = 0.1) -> Log:
    """People who were accepted with the probability `explore` below a score of 0.7, at c = 0.95."""
    of, random = log(seed, n), np.random.default_rng(1000 + seed)
    propensity = np.where(of.frame["score"].astype(float) >= 0.7, 1.0, explore)
    accepted = random.random(n) < propensity
    label = np.where(accepted, random.random(n) < good, np.nan)
    frame = of.frame.assign(decision=accepted.astype(int), label=label, propensity=propensity)
    return of._replace(frame=frame, cost=0.95)


def test_no_bad_outcome_yet_is_no_proof() -> None:
    """Of 1,000 held-out people, none of the some 40 whom only the challenger accepts has a bad outcome."""
    of = rare(0)
    score, label = of.frame["score"].astype(float), of.frame["label"]
    of.frame["label"] = label.mask(label.notna() & (score < 0.7), 1.0)
    first, second = of.frame["propensity"].to_numpy(), by_score(of, 0.3)
    second = np.where(second > 0.5, 1.0, 0.1)
    told = compared(of, first, second, 0.9)
    assert not told["better"], told["why"]
    difference = guard._comparison(of, first, second).difference("dr")
    assert difference.value - norm.isf(0.025 / 2) * difference.error > 0  # a normal interval would be wrong
    assert told["value"]["low"] < -0.004 < told["value"]["high"]  # the truth, by 6 % of bad outcomes


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_outcomes_of_one_kind_are_too_few(label: float) -> None:
    for everybody in (False, True):
        of = log(0)
        if everybody:
            of.frame["decision"], of.frame["propensity"] = 1, 1.0
        of.frame["label"] = np.where(of.frame["decision"] == 1, label, np.nan)
        of.frame.loc[of.frame["decision"].idxmax(), "label"] = 1 - label
        told = compared(of, by_score(of, 0.0), by_score(of, 0.5), 0.2)
        assert not told["better"]
        assert "2 good and 2 bad outcomes are needed" in told["why"]


def test_learning_goes_on_without_bad_outcomes(kept: Callable[..., Path], tmp_path: Path) -> None:
    own = Ledger(shutil.copy(kept(*METHOD, "live.held_out=0.9"), tmp_path / "loans.db"))
    own.outcomes(repaid(own.decide(people(0, 300)), 1).assign(repaid="yes"))
    told = own.learn()
    assert told["version"] == 2
    assert "0 bad outcomes, are too few" in told["guard"]["why"]
    assert own.status()["lacks"] == told["guard"]["why"]


def test_a_gap_that_cannot_be_told_promotes_nobody() -> None:
    """The small group f has fewer than 10 good outcomes that are known."""
    of = log(0)
    random = np.random.default_rng(0)
    of.frame["sex"] = np.where(random.random(len(of.frame)) < 0.01, "f", "m")
    assert (of.frame["sex"] == "f").sum() >= 10
    told = compared(of, by_score(of, 0.0), by_score(of, 0.5), 0.9)
    assert told["value"]["low"] > 0
    assert told["gaps"]["dpu"] < 0.9
    assert told["gaps"]["equal_opportunity"] is None
    assert not told["better"]
    assert "the gap between true-positive rates cannot be estimated: group f has fewer than 10" in told["why"]


def test_what_a_comparison_lacks() -> None:
    """Of those whom the policy on duty rejects, some 70 % here, 30 outcomes of equal weight are needed."""
    few, many = rare(0, explore=0.02), rare(0, 6000, explore=0.02)
    duty = few.frame["propensity"].to_numpy()
    lacks = str(lacking(few, duty))
    explored = int((few.frame["label"].notna() & (duty < 1)).sum())
    assert explored < 30
    assert f"worth {explored} equally weighted ones of 30" in lacks
    assert f"about {1000 * 30 / explored:.0f} held-out people, or a larger live.explore" in lacks
    assert lacking(many, many.frame["propensity"].to_numpy()) is None
    assert lacking(few, np.ones(1000)) is None  # there is nobody else to accept
    assert "a larger live.explore is needed" in str(
        lacking(rare(0, explore=0.0), np.where(duty < 1, 0.0, 1.0))
    )
    assert "are too few" in str(lacking(rare(0, 99), duty[:99]))


def test_outcomes_that_are_unlike_what_is_expected() -> None:
    random = np.random.default_rng(0)
    expected = random.uniform(0.3, 0.9, 300)
    label = (random.random(300) < expected).astype(float)
    for before in (None, 0.5, label.mean()):
        assert unexpected(label, before, expected) is None
    assert unexpected(label, None, None) is None
    assert "0% are good, of those before 60% were" in str(unexpected(np.zeros(300), 0.6, expected))
    assert "are bad more often" in str(unexpected(1 - label, None, expected))


@pytest.mark.parametrize("spoilt", [False, True])
def test_spoilt_outcomes_put_no_version_on_duty(
    spoilt: bool, kept: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Ledger(shutil.copy(kept("model=greedy", "live.promote=if_better"), tmp_path / "loans.db"))
    better = {"better": True, "why": "it is better", "value": None, "gaps": {}}
    monkeypatch.setattr("fairall.live.ledger.compared", lambda *_: dict(better))
    own.outcomes(repaid(own.decide(people(0, 200)), 1))
    assert own.learn()["promoted"]
    given = repaid(own.decide(people(200, 200, 2)), 3)
    own.outcomes(given.assign(repaid="no") if spoilt else given)
    told = own.learn()
    assert told["promoted"] is not spoilt
    assert ("promote the version by hand" in told["guard"]["why"]) is spoilt
    assert (told["guard"]["doubt"] is not None) is spoilt


@pytest.mark.parametrize("better", [True, False])
@pytest.mark.parametrize("doubt", [None, "outcomes are doubtful"])
def test_status_marks_a_doubtful_version(
    doubt: str | None,
    better: bool,
    kept: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = Ledger(shutil.copy(kept("model=greedy", "live.promote=if_better"), tmp_path / "loans.db"))
    value = {"estimate": 0.3, "low": 0.2, "high": 0.4}
    guard_ = {"better": better, "why": "it earns so", "value": value, "gaps": {}}
    monkeypatch.setattr("fairall.live.ledger.compared", lambda *_: dict(guard_))
    monkeypatch.setattr(Ledger, "_doubt", lambda *_: doubt)
    own.outcomes(repaid(own.decide(people(0, 200)), 1))
    own.learn()
    monkeypatch.setattr("fairall.live.ledger.compared", lambda *_: guard_ | {"value": None, "better": False})
    own.outcomes(repaid(own.decide(people(200, 200, 2)), 3))
    own.learn()
    found = own.status()
    assert [one["doubt"] for one in found["versions"]] == [None, doubt, doubt or "it earns so"]
    reasons = ["the first version"] + ["it earns so"] * (better and doubt is None)
    assert [duty["why"] for duty in found["duties"]] == reasons
    assert [duty["version"] for duty in found["duties"]] == [1, 2][: len(reasons)]
    assert {batch["date"] for batch in found["courses"]} == {at(0)[:10], at(2)[:10]}
    assert {batch["version"] for batch in found["courses"]} == {1, len(reasons)}
    axes = Figure().subplots()
    page.draw_value(found, axes)
    markers = [line.get_marker() for line in axes.lines if line.get_marker() in "ox"]
    assert markers == ["x" if doubt else "o", "x"]
    shown = frames(found)["duties"]
    assert list(shown["why"]) == reasons
    assert all(pd.Timestamp(since).year >= 2024 for since in shown.index)


def test_promotion_by_itself(
    kept: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*METHOD, "live.promote=if_better"]
    own = Ledger(shutil.copy(kept(*words), tmp_path / "loans.db"))
    own.outcomes(repaid(own.decide(people(0, 100)), 1))
    told = own.learn()
    assert not told["promoted"]
    assert "are too few" in told["guard"]["why"]
    stands = {one["version"]: (one["stands"], one["why"]) for one in own.status()["versions"]}
    assert stands == {1: ("on duty", "the first version"), 2: ("challenger", told["guard"]["why"])}
    own.outcomes(repaid(own.decide(people(100, 100, 2)), 3))
    better = {"better": True, "why": "it is better", "value": None, "gaps": {}}
    monkeypatch.setattr("fairall.live.ledger.compared", lambda *_: better)
    assert own.learn()["promoted"]
    assert own.status()["duty"] == 3
    assert own.status()["versions"][2]["why"] == "it is better"


def test_held_out_people_are_as_old_as_the_horizon(kept: Callable[..., Path], tmp_path: Path) -> None:
    words = [*METHOD, "live.horizon=30d", "live.held_out=0.5"]
    own = Ledger(shutil.copy(kept(*words), tmp_path / "loans.db"))
    for step in (0, 20, 40):
        own.decide(people(100 * step // 20, 100, step))
    with own.store.reading() as connection:
        policy = own._on_duty(connection).policy
        held = guard.log_of(record(connection), policy, own.settings, held=True)
    assert set(held.frame["time"]) == {pd.Timestamp(at(0))}
    assert 25 < len(held.frame) < 75
    assert len(own.log().frame) == 300


def test_status_warns_and_shows(kept: Callable[..., Path], tmp_path: Path) -> None:
    words = ["model=greedy", "exploration=none", "live.explore=0", "live.horizon=10d"]
    place = shutil.copy(kept(*words), tmp_path / "loans.db")
    own = Ledger(place)
    assert own.status()["people"] == 0
    own.decide(people(0, 150))
    moved = people(150, 150, 20).assign(income=lambda table: 1.5 * pd.to_numeric(table["income"]))
    own.decide(moved)
    found = own.status()
    alarms = "\n".join(found["alarms"])
    assert "nobody explores" in alarms
    assert "income has drifted" in alarms
    assert f"{found['overdue']} outcomes have not come within the horizon" in alarms
    assert found["waiting"] > found["overdue"] > 0
    assert sum(group["people"] for group in found["groups"]) == found["people"] == 300
    accepted = sum(group["acceptance"][0] * group["people"] for group in found["groups"])
    assert accepted == pytest.approx(found["accepted"])
    assert all(low < high for _, low, high in (batch["acceptance"] for batch in found["courses"]))
    assert sum(batch["acceptance"][0] * batch["people"] for batch in found["courses"]) == pytest.approx(
        accepted
    )
    assert any("Waiting" in line for line in sentences(found, place))
    shown = succeeded("live", "status", "loans.db", "--html", "page", cwd=tmp_path).stdout
    assert "was on duty" not in shown
    page = (tmp_path / "page" / "index.html").read_text()
    assert "income has drifted" in page
    assert (tmp_path / "page" / "figures" / "courses.png").exists()


def test_a_gap_is_found(kept: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Ledger(shutil.copy(kept(*METHOD), tmp_path / "loans.db"))
    table = people(0, 400)
    groups = torch.tensor((table["sex"] == "male").to_numpy(dtype=float), dtype=torch.float32)
    monkeypatch.setattr(Ledger, "_combined", lambda self, *_: groups)
    own.decide(table)
    found = own.status()
    assert found["gap"]["low"] > 0.5
    assert any("gap between acceptance rates" in alarm for alarm in found["alarms"])


def test_a_ledger_is_a_log(kept: Callable[..., Path], tmp_path: Path) -> None:
    own = Ledger(shutil.copy(kept(*METHOD, "live.explore=0.2"), tmp_path / "loans.db"))
    decided = own.decide(people(0, 400))
    own.outcomes(repaid(decided, 1))
    of = own.log()
    np.testing.assert_array_equal(of.frame["propensity"], decided["propensity"])
    assert (of.frame["label"].notna() == (decided["decision"] == 1)).all()
    (tmp_path / "elsewhere").mkdir()
    said = succeeded("evaluate", "../loans.db", cwd=tmp_path / "elsewhere").stdout
    assert said.startswith("Evaluation of the logged decisions on loans.db\n")
    assert "Evaluation: ../outputs/evaluations/loans-decisions/index.html" in said
    page = (tmp_path / "outputs" / "evaluations" / "loans-decisions" / "index.html").read_text()
    assert "decisions on loans.db" in page
    assert gettempdir() not in page.replace(str(tmp_path), "")
    told = refused("evaluate", "loans.db", "sensitive=nope", cwd=tmp_path)
    assert told.startswith("fairall: sensitive=nope: loans.db has no such column")
