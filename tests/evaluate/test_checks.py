"""Each refusal with a log on either side of it."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from fairall.evaluate import checks
from fairall.evaluate.estimated.bounds import Bounds
from fairall.evaluate.estimated.estimates import Estimate
from fairall.evaluate.evaluation import Comparison, Evaluation
from tests.evaluate.simulated import COST, applicants, evaluated, judged, log_of, models_of


def decided(people: pd.DataFrame, granted: Any, **columns: Any) -> pd.DataFrame:
    """The same people after other decisions."""
    granted = np.asarray(granted, dtype=bool)
    return people.assign(granted=granted.astype(int), repaid=people["truth"].where(granted), **columns)


def check_refused(one: Evaluation, message: str | None) -> None:
    """No value in one line; without a message, that nothing is refused."""
    assert (message or "None") in str(one.refused_value)
    assert "\n" not in str(one.refused_value)
    for value in one.values.values() if message else ():
        assert np.isnan([value.estimate, value.low, value.high]).all()
        assert value.why == one.refused_value


# Propensities that are not those of the decisions


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("right", None),
        ("certain", "1 rejected person had a recorded propensity of 1"),
        ("half", "instead of their number"),
        ("in one group", "for the people of group f"),
        ("in one region", "for the people with score from"),
        ("of the accepted", None),
        ("of a threshold", "adds up to"),
    ],
)
def test_propensities_that_do_not_add_up(wrong: str, message: str | None) -> None:
    """Those of the accepted only tell everything about a lottery, and nothing about a threshold."""
    people = applicants(3000)
    p, accepted, passed = people["p"], people["granted"] == 1, people["score"] > 0.2
    # An accepted person may have been certain.
    p = p.where(people.index != people.index[accepted][0], 1.0)
    other = {
        "right": p,
        "certain": p.where(people.index != people.index[~accepted][0], 1.0),
        "half": p / 2,
        "in one group": np.where(people["sex"] == "m", np.minimum(1.15 * p, 0.99), 0.8 * p),
        "in one region": p.where(people["score"] < 1.2, 0.65 * p),
        "of the accepted": p.where(accepted),
        "of a threshold": np.where(passed, 1.0, np.nan),
    }[wrong]
    people = decided(people, passed) if wrong == "of a threshold" else people
    check_refused(evaluated(people.assign(p=other), propensity="p"), message)


@pytest.mark.parametrize(("least", "accepted_only"), [(0.02, False), (0.15, True)])
def test_right_propensities_are_not_refused(least: float, accepted_only: bool) -> None:
    """In 30 logs, a tenth of whose people have a small one."""
    people = applicants(600)
    p = np.where(people.index % 10 == 0, least, people["p"].clip(least))
    for seed in range(30):
        log = log_of(decided(people, np.random.default_rng(seed).random(600) < p, p=p), propensity="p")
        assert checks.impossible(log, np.where(log.accepted | (not accepted_only), p, np.nan)) is None


@pytest.mark.parametrize(("value", "refused"), [(0.25, False), (0.36, False), (0.37, True), (-0.07, True)])
def test_an_estimate_outside_of_its_own_bounds(value: float, refused: bool) -> None:
    possible = Bounds(*(Estimate(np.array(end), np.zeros(1)) for end in (0.0, 0.3)))
    message = checks.outside(Estimate(np.array(value), np.array([0.02])), possible, "IPS")
    told = f"by IPS, {100 * value:.1f} per 100 people, is outside of what is possible"
    assert (told if refused else "None") in str(message)


# Overlap


def test_a_deterministic_log_tells_its_own_policy_only() -> None:
    people = applicants(2000)
    models = models_of(decided(people, people["score"] > 0))
    log, score = models.log, people["score"].to_numpy()
    assert models.separable
    same = judged(models, log.accepted)  # as an array, not known to be the logged decisions
    assert same.refused_value is None
    observed = np.mean(log.accepted * (np.nan_to_num(log.label) - COST))
    assert same.value("dr").value == pytest.approx(observed, abs=0.01)
    # Fewer people of those who were accepted have a value, and a difference.
    fewer = judged(models, score > 0.3)
    assert (fewer.refused_value, Comparison(same, fewer).refused_value) == (None, None)
    # 2 % more, none of whom was accepted, are too few to matter for the value, and all of the difference.
    more = judged(models, score > np.quantile(score[~log.accepted], 0.96))
    assert "no overlap" in str(Comparison(same, more).refused_value)
    check_refused(judged(models, np.ones(2000)), "no overlap")


def test_boxes_that_are_ticked_after_acceptance_are_named_where_overlap_is_missing() -> None:
    people, which = applicants(3000), np.random.default_rng(0).integers(4, size=3000)
    boxes = {f"box{k}": (people["granted"] == 1) & (which == k) for k in range(4)}
    one = evaluated(people.assign(**boxes))
    check_refused(one, "drop=[box0,box1,box2,box3] leaves out columns")
    assert "no overlap" in str(one.refused)


def test_a_nearly_deterministic_lottery_is_no_threshold() -> None:
    """Steep propensities, estimated well, give overlap where acceptance has a chance."""
    people = applicants(3000)
    accepted = np.random.default_rng(0).random(3000) < expit(0.5 + 2 * people["score"])
    one = evaluated(decided(people, accepted))
    assert (one.models.separable, one.refused_value) == (False, None)


def test_a_region_without_acceptance() -> None:
    """A policy that does not want its people has a value, but no rates of people by their label."""
    people = applicants()
    hull = people.index % 5 == 0
    closed = decided(people, (people["granted"] == 1) & ~hull, town=np.where(hull, "Hull", "York"))
    models = models_of(closed)
    one = judged(models, people["new"])
    check_refused(one, "none of 300 rows with town=Hull")
    elsewhere = judged(models, people["new"].where(~hull, 0.0))
    assert elsewhere.refused_value is None
    assert "no rates by label: no overlap: " in str(elsewhere.refused)
    assert Comparison(elsewhere, one).refused_value is not None
    # Nobody of a group.
    men = decided(people, (people["granted"] == 1) & (people["sex"] == "m"))
    check_refused(evaluated(men), "of group f")


def test_propensities_near_0_and_few_accepted_people_like_those_of_the_policy() -> None:
    """A tenth of the people, who are in every region, had next to no chance."""
    draw = np.random.default_rng(0)
    people = applicants(3000)
    rare, rank = draw.random(3000) < 0.1, people["score"].rank(ascending=False)
    p = np.where(rare, 0.005, people["p"])
    models = models_of(decided(people, draw.random(3000) < p, p=p), propensity="p")
    for target, message in (
        (people["new"], "had a propensity of a known label below 0.01"),
        (people["new"].where(~rare, 0.0), None),
        ((rank <= 28) & ~rare, "effective sample size"),
        ((rank <= 160) & ~rare, None),
    ):
        check_refused(judged(models, target), message)


@pytest.mark.parametrize(("error", "refused"), [(0.03, False), (0.01, True)])
def test_the_share_without_overlap_may_not_exceed_the_error(error: float, refused: bool) -> None:
    log = log_of(applicants(1000), propensity="p")
    assert log.propensity is not None
    chance, everybody, weight = log.propensity.copy(), np.ones(1000), log.revealed / log.propensity
    chance[np.flatnonzero(~log.accepted)[:20]] = 0.001
    message = checks.lacking(log, chance, False, everybody, weight, "of the log", error)
    expected = "2.0% of the people of the log had a propensity of a known label below 0.01"
    assert (expected if refused else "None") in str(message)


# Policies that know the past decision


@pytest.mark.parametrize("keys", [{"propensity": "p"}, {}])
def test_a_policy_that_knows_the_decision_and_policies_of_the_features(keys: dict[str, str]) -> None:
    """The latter are not refused, however closely they follow the propensity, or jump."""
    people = applicants(2000)
    models, score = models_of(people, **keys), people["score"].to_numpy()
    accepted, knows = models.log.accepted, "depends on the past decision"
    for target, message in (
        (accepted & (people["new"] > 0.4), knows),
        (accepted | (people["new"] > 0.8), knows),
        (0.3 + 0.4 * accepted, knows),
        (expit(20 * score), None),
        (score > 0.3, None),
        (models.acceptance, None),
        (np.random.default_rng(0).random(2000) < people["new"], None),
        (np.where(people["sex"] == "m", 0.9, 0.2), None),
        (0.5 + 0.5 * np.sin(8 * score), None),
    ):
        check_refused(judged(models, target), message)


def test_a_log_without_labels() -> None:
    one = evaluated(applicants().drop(columns="repaid"), label=None)
    check_refused(one, "the log has no labels: only acceptance rates are known")
