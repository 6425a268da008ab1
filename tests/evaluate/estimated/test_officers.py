"""Bounds by decision makers of different strictness, against the truth of simulated logs."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from fairall.evaluate import compare, evaluate
from fairall.evaluate.estimated.bounds import Limits
from fairall.evaluate.estimated.officers import officers, p_of_assignment, strictness, why_not
from fairall.evaluate.log import DecisionLog
from tests.evaluate.simulated import COST

KEYS: dict[str, Any] = {
    "decision": "granted",
    "label": "repaid",
    "sensitive": "sex",
    "cost": COST,
    "decision_maker": "officer",
}
NOT_FEATURES = ("truth",)


def cases(n: int, seed: int, *, by_score: float = 0.0, forgers: bool = False) -> pd.DataFrame:
    """Cases decided by ten officers, who see a hidden variable `u` that the label depends on too.

    Args:
        n: rows.
        seed: of the draw.
        by_score: how far the assignment depends on the score; 0 is at random.
        forgers: whether labels depend on who decides, which the bounds do not allow.
    """
    draw = np.random.default_rng(seed)
    score, hidden, sex = draw.normal(size=n), draw.normal(size=n), draw.choice(["f", "m"], n)
    officer = np.clip(draw.integers(10, size=n) + np.round(by_score * score), 0, 9).astype(int)
    lenient = officer / 2.0 - 1.0
    chance = expit(0.3 + score + hidden + (4.0 * (lenient - 1.25) if forgers else 0.0))
    accepted = draw.random(n) < expit(lenient + 0.7 * score + hidden - 0.3 * (sex == "f"))
    repays = (draw.random(n) < chance).astype(float)
    return pd.DataFrame(
        {
            "score": score,
            "sex": sex,
            "officer": [f"officer {k}" for k in officer],
            "granted": accepted.astype(int),
            "repaid": np.where(accepted, repays, np.nan),
            "new": expit(1.5 * score),
            "other": expit(0.6 + 1.1 * score),
            "truth": repays,
        }
    )


def log_of(people: pd.DataFrame, **keys: Any) -> DecisionLog:
    """The log of `cases`."""
    return DecisionLog.of(people, not_features=(*NOT_FEATURES, "new", "other"), **(KEYS | keys))


def truths(n: int = 400_000) -> dict[str, float]:
    """Values, true-positive rates and their gap of the policies, from many people."""
    people = cases(n, 99)
    found: dict[str, Any] = {}
    for name in ("new", "other"):
        a, y, sex = people[name], people["truth"], people["sex"]
        by = (a * y).groupby(sex).sum() / y.groupby(sex).sum()
        found |= {
            f"value {name}": (a * (y - COST)).mean(),
            f"gap {name}": by.max() - by.min(),
            f"tpr {name}": (a * y).sum() / y.sum(),
            f"fpr {name}": (a * (1 - y)).sum() / (1 - y).sum(),
            f"precision {name}": (a * y).sum() / a.sum(),
        }
    return {key: float(value) for key, value in found.items()}


def covers(limits: Limits, truth: float) -> bool:
    return limits.interval_low <= truth <= limits.interval_high


def width(limits: Limits) -> float:
    return limits.high - limits.low


@pytest.mark.slow
def test_bounds_cover_the_truth_and_are_narrower_than_without_officers() -> None:
    """A hidden variable makes DR wrong; 25 logs, whose bounds may miss once or twice by chance."""
    true, logs = truths(), 25
    covered: dict[str, list[bool]] = {}
    widths = []
    for number in range(logs):
        people = cases(3000, number).drop(columns="truth")
        found = compare("new", "other", people, propensity_model="logistic", outcome_model="logistic", **KEYS)
        one, two = found.first, found.second
        assert one.models.why_no_officers is None
        widths.append([width(one.officers["utility"]), width(one.bounds["utility"])])
        own = {
            "value": covers(one.officers["utility"], true["value new"]),
            "gap": covers(one.officers["equal_opportunity"], true["gap new"]),
            "dr": one.values["dr"].low <= true["value new"] <= one.values["dr"].high,
        }
        rates = ("value", "tpr", "fpr", "precision")
        differences = {key: true[f"{key} other"] - true[f"{key} new"] for key in rates}
        for view, limits in found.bounds.items():
            if not view.startswith("Γ"):
                own |= {
                    f"{view}: {key}": covers(of, differences[key])
                    for key, of in zip(rates, limits.values(), strict=True)
                }
                # Narrower than the difference of two bounds.
                apart = (two.bounds if view == "no assumption" else two.officers)["utility"]
                separate = width(apart) + width(
                    (one.bounds if view == "no assumption" else one.officers)["utility"]
                )
                assert width(limits["utility"]) < 0.7 * separate
        for key, one_covered in own.items():
            covered.setdefault(key, []).append(one_covered)
    shares = {key: np.mean(of) for key, of in covered.items()}
    assert shares.pop("dr") < 0.8
    assert min(shares.values()) >= 0.88, shares
    of_officers, without = np.mean(widths, axis=0)
    assert of_officers < 0.7 * without


def test_ends_are_those_of_the_known_population() -> None:
    """Two officers, one feature: the bounds by hand from probabilities, at their sampling errors."""
    draw, n = np.random.default_rng(0), 40_000
    x, z = draw.integers(2, size=n), draw.integers(2, size=n)
    chance = np.array([[0.2, 0.6], [0.5, 0.9]])[z, x]  # of acceptance: the second officer is more lenient
    y = draw.random(n) < np.array([0.3, 0.7])[x]
    accepted = draw.random(n) < chance
    people = pd.DataFrame(
        {
            "x": np.where(x, "b", "a"),
            "sex": draw.choice(["f", "m"], n),
            "officer": np.where(z, "two", "one"),
            "granted": accepted.astype(int),
            "repaid": np.where(accepted, y.astype(float), np.nan),
        }
    )
    log = DecisionLog.of(people, **KEYS)
    assert strictness(log).tolist() == z.tolist()
    found = officers(log)
    for level, low, high in ((0, 0.5 * 0.3, 0.5 * 0.3 + 0.5), (1, 0.9 * 0.7, 0.9 * 0.7 + 0.1)):
        own = x == level
        assert found.low[own].mean() == pytest.approx(low, abs=0.015)
        assert found.high[own].mean() == pytest.approx(high, abs=0.015)
    assert found.p_assignment > 0.001


@pytest.mark.whole
def test_assignment_by_features_is_seen_and_random_assignment_seldom() -> None:
    p = []
    for number in range(200):
        log = log_of(cases(400, number))
        p.append(p_of_assignment(log, strictness(log)))
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.04)
    log = log_of(cases(1000, 0, by_score=1.0))
    assert p_of_assignment(log, strictness(log)) < 1e-6


def test_labels_that_depend_on_the_officer_are_refused() -> None:
    people = cases(6000, 0, forgers=True).drop(columns=["truth", "other"])
    found = evaluate("new", people, propensity_model="logistic", outcome_model="logistic", **KEYS)
    assert "exclude each other" in str(found.models.why_no_officers)
    assert found.officers == {}


def test_why_there_are_no_bounds() -> None:
    people = cases(900, 0)
    assert why_not(log_of(people)) is None
    assert why_not(log_of(people, decision_maker=None)) == "no decision makers are given"
    one = people.assign(officer="officer 1")
    assert "one decision maker is no instrument" in str(why_not(log_of(one)))
    few = people.head(150)
    assert "fewer than two levels of strictness of 100 rows each" in str(why_not(log_of(few)))
    unknown = people.assign(repaid=people["repaid"].where(people.index % 7 > 0))
    assert why_not(log_of(unknown)) == "some of the accepted have no label"


@pytest.mark.parametrize(("granted", "seed"), [(0, 0), (1, 4)])
def test_an_officer_with_one_case_hardly_changes_the_bounds(granted: int, seed: int) -> None:
    people = cases(600, seed).drop(columns=["truth", "other"])
    people["officer"] = np.where(people["officer"] < "officer 5", "strict", "lenient")
    one = people.head(1).assign(officer="once", granted=granted, repaid=1.0 if granted else np.nan)
    found = [
        evaluate("new", table, propensity_model="logistic", outcome_model="logistic", **KEYS)
        for table in (people, pd.concat([people, one]))
    ]
    assert [each.models.why_no_officers for each in found] == [None, None]
    for name, limits in found[0].officers.items():
        other = found[1].officers[name]
        assert (other.low, other.high) == pytest.approx((limits.low, limits.high), abs=0.02)


@pytest.mark.parametrize(
    ("sizes", "merged"),
    [
        ((300, 300), (0, 1)),
        ((300, 300, 1), (0, 1, 1)),
        ((1, 300, 300), (0, 0, 1)),
        ((150, 20, 130), (0, 1, 1)),
        ((60, 60, 60, 60), (0, 0, 1, 1)),
        ((100, 100, 100, 100), (0, 1, 2, 3)),
        ((400, 40), (0, 0)),
    ],
)
def test_small_levels_are_merged_with_the_smaller_neighbour(
    sizes: tuple[int, ...], merged: tuple[int, ...]
) -> None:
    officer = np.repeat(np.arange(len(sizes)), sizes)
    shares = [(k + 1) / (len(sizes) + 1) for k in range(len(sizes))]
    granted = np.concatenate([np.arange(n) + 0.5 < n * share for n, share in zip(sizes, shares, strict=True)])
    people = cases(len(officer), 0)
    people = people.assign(
        officer=officer, granted=granted.astype(int), repaid=people["truth"].where(granted)
    )
    level = np.array(merged)[officer]
    order = np.random.default_rng(0).permutation(len(people))
    assert strictness(log_of(people)).tolist() == level.tolist()
    assert strictness(log_of(people.iloc[order])).tolist() == level[order].tolist()


def test_decisions_taken_keep_their_observed_value() -> None:
    people = cases(3000, 1).drop(columns=["truth", "new", "other"])
    found = evaluate(None, people, propensity_model="logistic", outcome_model="logistic", **KEYS)
    limits = found.officers["utility"]
    assert (limits.low, limits.high) == pytest.approx([found.values["dr"].estimate] * 2)
    assert width(found.officers["equal_opportunity"]) <= width(found.bounds["equal_opportunity"]) + 0.02
