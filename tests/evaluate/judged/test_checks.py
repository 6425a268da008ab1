"""Each refusal with a log on either side of it."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from fairall.evaluate.comparison import Comparison
from fairall.evaluate.estimated.bounds import Bounds
from fairall.evaluate.estimated.influence import Estimate
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.judged import checks
from fairall.evaluate.judged.models import Models
from tests.evaluate.simulated import COST, applicants, judged, log_of, models_of


def decided(people: pd.DataFrame, granted: np.ndarray, **columns: Any) -> pd.DataFrame:
    """The same people after other decisions."""
    granted = np.asarray(granted, dtype=bool)
    return people.assign(granted=granted.astype(int), repaid=people["truth"].where(granted), **columns)


def judged_on(people: pd.DataFrame, target: Any, **keys: Any) -> Evaluation:
    return judged(models_of(people, **keys), target)


def check_refused(one: Evaluation, told: str) -> None:
    """No value and no rates that need a weight, in one line, but naive rates, acceptance and bounds."""
    plain = one.to_plain()
    assert told in (plain["refused"] or "nothing")
    assert "\n" not in plain["refused"]
    for value in plain["value"].values():
        assert value == {"estimate": None, "low": None, "high": None, "why": plain["refused"]}
    assert plain["guarantee"]["low"] is None
    assert plain["fairness"]["utility_gap"]["naive"]["estimate"] is not None
    for name in ("ips", "dr"):
        assert plain["fairness"]["dpu"][name]["low"] is not None
        assert plain["fairness"]["equal_opportunity"][name]["estimate"] is None
    assert plain["bounds"]["utility"]["low"] <= plain["bounds"]["utility"]["high"]
    assert plain["sensitivity"] is None


# Propensities that are not those of the decisions


def test_a_rejected_person_with_a_propensity_of_1() -> None:
    people = applicants()
    assert judged_on(people, people["new"], propensity="p").refused is None
    row = people.index[people["granted"] == 0][0]
    certain = people.assign(p=people["p"].where(people.index != row, 1.0))
    one = judged_on(certain, people["new"], propensity="p")
    check_refused(one, "1 rejected person had a recorded propensity of 1")
    # An accepted person may have one.
    row = people.index[people["granted"] == 1][0]
    accepted = people.assign(p=people["p"].where(people.index != row, 1.0))
    assert judged_on(accepted, people["new"], propensity="p").refused is None


@pytest.mark.parametrize("wrong", ["complement", "half", "in one group", "in one region"])
def test_propensities_that_do_not_add_up(wrong: str) -> None:
    people = applicants(3000)
    p = people["p"]
    other = {
        "complement": 1 - p,
        "half": p / 2,
        "in one group": np.where(people["sex"] == "m", np.minimum(1.15 * p, 0.99), 0.8 * p),
        "in one region": p.where(people["score"] < 1.2, 0.65 * p),
    }[wrong]
    one = judged_on(people.assign(p=other), people["new"], propensity="p")
    check_refused(one, "adds up to")
    who = {"in one group": "for the people of group f", "in one region": "for the people with score from"}
    assert who.get(wrong, "instead of their number") in str(one.refused)


@pytest.mark.parametrize(("least", "accepted_only"), [(0.02, False), (0.15, True)])
def test_right_propensities_are_not_refused(least: float, accepted_only: bool) -> None:
    """In 60 logs, a tenth of whose people have a small one."""
    for seed in range(60):
        people = applicants(600, seed=seed)
        p = np.where(np.arange(600) % 10 == 0, least, people["p"].clip(least))
        log = log_of(decided(people, np.random.default_rng(seed).random(600) < p, p=p), propensity="p")
        known = np.where(log.accepted, p, np.nan) if accepted_only else p
        assert checks.impossible(log, known, recorded=True) is None


def test_propensities_of_the_accepted_only() -> None:
    """From a lottery they tell everything, from a threshold nothing: those rejected had no chance."""
    people = applicants(2000)
    lottery = people.assign(p=people["p"].where(people["granted"] == 1))
    assert judged_on(lottery, people["new"], propensity="p").refused is None
    passed = people["score"] > 0.2
    threshold = decided(people, passed, p=np.where(passed, 1.0, np.nan))
    check_refused(judged_on(threshold, people["new"], propensity="p"), "adds up to")
    part = decided(people, passed & (people["granted"] == 1))
    part["p"] = people["p"].where(part["granted"] == 1)
    check_refused(judged_on(part, people["new"], propensity="p"), "adds up to")


def test_an_estimate_outside_of_its_own_bounds() -> None:
    possible = Bounds(*(Estimate(np.array(end), np.zeros(1)) for end in (0.0, 0.3)))
    for value, told in (
        (0.25, None),
        (0.36, None),
        (0.37, "37.0 per 100 people, is outside"),
        (-0.07, "outside"),
    ):
        found = checks.outside(Estimate(np.array(value), np.array([0.02])), possible, "IPS")
        assert (found is None) == (told is None)
        assert told is None or told in str(found)
    # Propensities that are wrong for too few to tell from sums, whom the policy accepts.
    people = applicants(2000)
    people["other"] = np.random.default_rng(1).normal(size=2000)
    few = (people["score"] > 0.5) & (people["other"] > 1.0)
    people = decided(people.assign(truth=people["truth"].where(~few, 1.0)), (people["granted"] == 1) | few)
    for factor, told in ((0.9, "None"), (0.4, "is outside of what is possible")):
        wrong = people.assign(p=people["p"].where(~few, factor))
        assert told in str(judged_on(wrong, few, propensity="p").refused_value)


# Overlap


@pytest.fixture(scope="module")
def deterministic() -> Models:
    """A log that accepts whose score is above 0, without recorded propensities."""
    people = applicants(2000)
    return models_of(decided(people, people["score"] > 0))


def test_a_deterministic_log_tells_its_own_policy_only(deterministic: Models) -> None:
    log = deterministic.log
    score = log.x["score"].to_numpy()
    assert deterministic.separable
    same = judged(deterministic, log.accepted)  # as an array, not known to be the logged decisions
    assert same.refused_value is None
    observed = np.mean(log.accepted * (np.nan_to_num(log.label) - COST))
    assert same.value("dr").value == pytest.approx(observed, abs=0.01)
    # Fewer people of those who were accepted have a value, and a difference.
    fewer = judged(deterministic, score > 0.3)
    assert fewer.refused_value is None
    assert Comparison(same, fewer).refused_value is None
    # 2 % more, none of whom was accepted, are too few to matter for the value, and all of the difference.
    more = judged(deterministic, score > np.quantile(score[~log.accepted], 0.96))
    assert 0.015 < np.mean(more.target - same.target) < 0.025
    assert "no overlap" in str(Comparison(same, more).refused_value)
    everybody = judged(deterministic, np.ones(2000))
    check_refused(everybody, "no overlap")


def test_boxes_that_are_ticked_after_acceptance_are_named_where_overlap_is_missing() -> None:
    people, which = applicants(3000), np.random.default_rng(0).integers(4, size=3000)
    boxes = {f"box{k}": (people["granted"] == 1) & (which == k) for k in range(4)}
    one = judged_on(people.assign(**boxes), people["new"])
    check_refused(one, "no overlap")
    assert "drop=[box0,box1,box2,box3] leaves out columns" in str(one.refused)


@pytest.mark.parametrize("share", [0.04, 0.09])
def test_a_rotated_policy_of_a_deterministic_log(share: float) -> None:
    """That accepts people whom a threshold in two features did not."""
    people = applicants(3000)
    people["other"] = np.random.default_rng(1).normal(size=3000)
    angle = 2 * np.pi * share
    logged = people["score"] + people["other"] > 0
    turn = np.pi / 4 + angle
    rotated = np.cos(turn) * people["score"] + np.sin(turn) * people["other"] > 0
    people = decided(people, logged)
    assert (rotated & ~logged).mean() == pytest.approx(share, abs=0.01)
    models = models_of(people, "auto")
    same, other = judged(models, logged), judged(models, rotated)
    assert same.refused_value is None
    assert "no overlap" in str(other.refused_value if share > 0.05 else Comparison(same, other).refused_value)
    assert Comparison(judged(models, None), other).refused_value is not None


def test_a_nearly_deterministic_lottery_is_no_threshold() -> None:
    """Steep propensities, estimated well, give overlap where acceptance has a chance."""
    people = applicants(3000)
    p = expit(0.5 + 2 * people["score"])
    models = models_of(decided(people, np.random.default_rng(0).random(3000) < p))
    assert not models.separable
    assert judged(models, people["new"]).refused_value is None


def closed(people: pd.DataFrame) -> pd.DataFrame:
    """Nobody of the town of Hull was accepted."""
    hull = people.index % 5 == 0
    return decided(people, (people["granted"] == 1) & ~hull, town=np.where(hull, "Hull", "York"))


def test_a_region_without_acceptance() -> None:
    people = closed(applicants())
    hull = people["town"] == "Hull"
    models = models_of(people)
    one = judged(models, people["new"])
    check_refused(one, "none of 300 rows")
    assert "town=Hull" in str(one.refused)
    # A policy that does not want them has a value, but no rates of people by their label.
    elsewhere = judged(models, people["new"].where(~hull, 0.0))
    assert elsewhere.refused_value is None
    assert str(elsewhere.refused).startswith(
        "no equal-opportunity gap, false-positive gap, false-negative gap: no"
    )
    plain = elsewhere.to_plain()
    assert plain["value"]["dr"]["low"] is not None
    for name, of in plain["fairness"].items():
        by_label = name in ("equal_opportunity", "false_positive", "false_negative")
        assert (of["dr"]["estimate"] is None) == (of["ips"]["estimate"] is None) == by_label
        assert of["naive"]["estimate"] is not None
    assert "equal_opportunity" not in plain["sensitivity"]["bounds"]
    both = Comparison(elsewhere, one).to_plain()
    assert both["refused"].startswith("policy: no equal-opportunity gap")
    assert both["difference"]["value"]["dr"]["estimate"] is None
    assert both["difference"]["fairness"]["dpu"]["dr"]["estimate"] is not None


@pytest.mark.parametrize("kind", ["part of a decile", "two features"])
def test_a_corner_without_acceptance(kind: str) -> None:
    """Of a tenth of the people, with half of the policy's acceptances and bad labels; in 4 of 5 logs."""
    refused = 0
    for seed in range(5):
        people = applicants(1000, seed=seed)
        people["other"] = other = np.random.default_rng(seed + 10).normal(size=1000)
        never = other > 1.3 if kind == "part of a decile" else (other > 0.5) & (people["score"] > 0.5)
        people = decided(
            people.assign(truth=people["truth"].where(~never, 0.0)), (people["granted"] == 1) & ~never
        )
        refused += "no overlap: none of " in str(judged_on(people, np.where(never, 1.0, 0.11)).refused)
        # A policy that leaves them alone has a value.
        assert seed or judged_on(people, np.where(never, 0.0, 0.5)).refused_value is None
    assert refused >= 4


def test_a_group_that_was_never_accepted() -> None:
    people = applicants()
    men = decided(people, (people["granted"] == 1) & (people["sex"] == "m"))
    plain = judged_on(men, people["new"]).to_plain()
    assert "of group f" in plain["refused"]
    assert plain["fairness"]["utility_gap"]["naive"]["estimate"] is None
    assert plain["bounds"]["utility_gap"]["high"] is not None


def test_propensities_near_0() -> None:
    """Of a tenth of the people, who are found in every region."""
    draw = np.random.default_rng(0)
    people = applicants(3000)
    rare = draw.random(3000) < 0.1
    p = np.where(rare, 0.005, people["p"])
    models = models_of(decided(people, draw.random(3000) < p, p=p), propensity="p")
    check_refused(judged(models, people["new"]), "had a propensity of a known label below 0.01")
    assert judged(models, people["new"].where(~rare, 0.0)).refused_value is None


def test_the_share_without_overlap_may_not_exceed_the_error() -> None:
    people = applicants(1000)
    log = log_of(people, propensity="p")
    assert log.propensity is not None
    propensity, one = log.propensity.copy(), np.ones(1000)
    some = np.flatnonzero(~log.accepted)[:20]
    propensity[some] = 0.001

    def told(error: float) -> str | None:
        weight = log.revealed / log.propensity
        return checks.lacking(log, propensity, False, one, weight, "of the log", error)

    assert told(0.03) is None
    assert "2.0% of the people of the log had a propensity of a known label below 0.01" in str(told(0.01))


def test_few_accepted_people_like_those_of_the_policy() -> None:
    people = applicants()
    models = models_of(people, propensity="p")
    rank = people["score"].rank(ascending=False)
    assert "effective sample size" in str(judged(models, rank <= 25).refused)
    assert judged(models, rank <= 80).refused_value is None


# Policies that know the past decision


@pytest.mark.parametrize("propensities", ["recorded", "estimated"])
def test_a_policy_that_knows_the_decision(propensities: str) -> None:
    people = applicants(2000)
    models = models_of(people, **({"propensity": "p"} if propensities == "recorded" else {}))
    accepted = models.log.accepted
    for target in (accepted & (people["new"] > 0.4), accepted | (people["new"] > 0.8), 0.3 + 0.4 * accepted):
        check_refused(judged(models, target), "depends on the past decision")


def test_policies_of_the_features_are_not_refused() -> None:
    """However closely they follow the propensity, or jump."""
    people = applicants(2000)
    draw = np.random.default_rng(0)
    for keys in ({"propensity": "p"}, {}):
        models = models_of(people, **keys)
        score = people["score"].to_numpy()
        targets = {
            "steep": expit(20 * score),
            "threshold": score > 0.3,
            "propensity": people["p"],
            "estimated propensity": models.acceptance,
            "lottery": draw.random(2000) < people["new"],
            "by group": np.where(people["sex"] == "m", 0.9, 0.2),
            "wavy": 0.5 + 0.5 * np.sin(8 * score),
        }
        for name, target in targets.items():
            assert judged(models, target).refused_value is None, name


def test_a_log_without_labels() -> None:
    people = applicants()
    models = models_of(people.drop(columns="repaid"), label=None)
    plain = judged(models, people["new"]).to_plain()
    assert plain["refused"] == "the log has no labels: only acceptance rates are known"
    rates = people.groupby("sex")["new"].mean()
    assert plain["fairness"]["dpu"]["dr"]["estimate"] == pytest.approx(abs(rates["f"] - rates["m"]))
    assert plain["fairness"]["utility_gap"]["naive"]["estimate"] is None
    mean = people["new"].mean()
    ends = [plain["bounds"]["utility"][end] for end in ("low", "high")]
    assert ends == pytest.approx([-COST * mean, (1 - COST) * mean])
