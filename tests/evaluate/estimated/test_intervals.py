"""Intervals of rates, amounts, ratios and gaps: by hand, exactly, and by draws of a known distribution."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from scipy.stats import binom, t

from fairall.errors import FairAllError
from fairall.evaluate import compare, evaluate
from fairall.evaluate.estimated.estimates import (
    LEAST_FREEDOM,
    Estimate,
    Sample,
    Z,
    differences,
    gap_difference,
    gap_interval,
    joint_normal,
    ratio_interval,
    ratios,
)
from tests.evaluate.simulated import KEYS, applicants

LOGISTIC = {"propensity_model": "logistic", "outcome_model": "logistic"}
NOT_FEATURES = ["p", "new", "steep", "truth", "chance"]


def shares(a: np.ndarray, group: np.ndarray, person: np.ndarray | None = None) -> Estimate:
    """The share of 1 in each group."""
    by_group = Sample(len(a), person=person).by(group, int(group.max()) + 1)
    everyone = np.ones(len(a))
    return (by_group.mean(a.astype(float)) / by_group.mean(everyone)).on(by_group.support(everyone))


def of_counts(*counts: tuple[int, int], rows: int = 1) -> Estimate:
    """The share of k among n people in each group, with equal rows each."""
    a = np.concatenate([np.arange(n) < k for k, n in counts])
    group = np.repeat(np.arange(len(counts)), [n for _, n in counts])
    return shares(*(np.repeat(part, rows) for part in (a, group, np.arange(len(a)))))


def agresti_coull(k: float, n: float, quantile: float = Z, correction: float = 1.0) -> tuple[float, float]:
    """As printed in Agresti and Coull (1998), where the correction of the variance of clusters is 1."""
    added, p = quantile**2, k / n
    middle = (k + added / 2) / (n + added)
    spread = n * p * (1 - p) * correction + added / 4 + n * added * (p - 0.5) ** 2 / (n + added)
    half = quantile * np.sqrt(spread) / (n + added)
    return max(middle - half, 0.0), min(middle + half, 1.0)


# Rates and amounts


@pytest.mark.parametrize("n", [10, 20, 49])
def test_intervals_of_shares_by_hand(n: int) -> None:
    """Equal rows of people count as people, with Student's t, and n − 1 where some and some are positive."""
    for k in sorted({0, 1, n // 3, n}):
        assert of_counts((k, n)).interval(0)[:3] == pytest.approx((k / n, *agresti_coull(k, n)))
        ends = agresti_coull(k, n, float(t.ppf(0.975, n - 1)), n / (n - 1))
        assert of_counts((k, n), rows=7).interval(0)[:3] == pytest.approx((k / n, *ends))


@pytest.mark.parametrize(("n", "mean", "least"), [(10, 0.964, 0.925), (20, 0.962, 0.929), (49, 0.958, 0.936)])
def test_intervals_of_rates_cover_exactly(n: int, mean: float, least: float) -> None:
    rates = np.linspace(0.001, 0.999, 999)
    _, low, high = (end[:, None] for end in of_counts(*((k, n) for k in range(n + 1))).ends())
    chances = binom.pmf(np.arange(n + 1)[:, None], n, rates)
    covered = (chances * ((low <= rates) & (rates <= high))).sum(0)
    assert (covered.mean(), covered.min()) == pytest.approx((mean, least), abs=0.002)


@pytest.mark.parametrize(
    "rows", [[2] * 5, [2, 2], [2, 2, 2], [1, 2, 3, 4], [590] + [1] * 10, [300] + [50] * 6]
)
def test_degrees_of_freedom_are_those_of_bell_and_mccaffrey(rows: list[int]) -> None:
    """Of the sum of squares of φ, for clusters of one outcome each, from its covariance matrix."""
    share = np.array(rows) / np.sum(rows)
    residual = np.eye(len(rows)) - share  # of the outcome of each cluster less their mean
    covariance = (share[:, None] * residual) @ (share[:, None] * residual).T
    person = np.repeat(np.arange(len(rows)), rows)
    support = Sample(len(person), person=person).support(np.ones(len(person)), cut=False)
    expected = np.trace(covariance) ** 2 / np.trace(covariance @ covariance)
    assert support.freedom == pytest.approx(expected)
    assert support.shrinkage == pytest.approx(np.trace(covariance) / (share**2).sum())
    found = shares(np.arange(len(person)) % 2 == 0, np.zeros(len(person), dtype=int), person).interval(0)
    assert np.isnan(found.low) == (expected < LEAST_FREEDOM)
    assert found.why is None or f"who count as {1 / (share**2).sum():.1f} with" in found.why


def test_amounts_have_a_width_and_their_difference_from_0_a_probability() -> None:
    sample = Sample(100)
    support = sample.support(np.ones(100), lowest=-300.0, highest=50.0, cut=False)
    for good in (100, 80):
        gains = pd.Series(np.where(np.arange(100) < good, 50.0, -300.0))
        estimate, mean = sample.mean(gains.to_numpy()).on(support), gains.mean()
        error = np.sqrt(gains.sem() ** 2 + 2.0 * (350 / 100) ** 2)  # with the variance of two outcomes
        for k in (Z, 3.0):
            half = t.isf(ndtr(-k), 99) * error
            found = estimate.difference_interval(k)
            assert found[:3] == pytest.approx((mean, mean - half, mean + half))
            assert found.probability == pytest.approx(t.cdf(mean / error, 99))
            assert estimate.interval(k=k)[:3] == found[:3]


# Differences, ratios and gaps


def test_differences_of_two_rates_by_hand() -> None:
    """Newcombe (1998), of independent rates."""
    for k, n, other, m in ((0, 10, 20, 40), (10, 10, 0, 40), (3, 10, 12, 40), (0, 10, 0, 40)):
        (low, high), (other_low, other_high) = agresti_coull(k, n), agresti_coull(other, m)
        p, q, rates = k / n, other / m, of_counts((k, n), (other, m))
        ends = [p - q - np.hypot(p - low, other_high - q), p - q + np.hypot(high - p, q - other_low)]
        found = differences(rates[[0]], rates[[1]])
        assert [end.item() for end in found] == pytest.approx([p - q, *ends])
        low, high = sorted(np.array(ends) * (1 if p >= q else -1))
        assert gap_interval(rates)[:3] == pytest.approx((abs(p - q), max(low, 0.0), min(high, 1.0)))


def test_ends_of_ratios_are_those_for_which_a_difference_ends_at_0() -> None:
    rates = of_counts((3, 10), (25, 40), (1, 30))
    rates = Estimate(rates.value, rates.phi + 0.3 * rates.phi[::-1], rates.support)  # correlated
    found = ratios(rates, rates, 2.2)
    for g, h in ((0, 1), (1, 0), (2, 1)):
        for end in ("low", "high"):
            difference = differences(rates[[g]], rates[[h]] * getattr(found, end)[g, h], 2.2)
            assert getattr(difference, end).item() == pytest.approx(0.0, abs=1e-9)
    expected = 4 / 75, ratios(rates, rates).low[2, 1], ratios(rates, rates, joint_normal(3)).high[2, 1]
    assert ratio_interval(rates)[:3] == pytest.approx(expected)
    assert np.isnan(ratio_interval(of_counts((0, 10), (0, 40))).estimate)


def test_intervals_of_gaps_and_ratios_of_two_groups_cover_exactly() -> None:
    n, m, grid = 10, 40, np.linspace(0.1, 0.9, 17)
    p, q = (rates.ravel() for rates in np.meshgrid(grid, grid))
    gaps, least = np.abs(p - q), np.minimum(p, q) / np.maximum(p, q)
    covered = np.zeros((2, len(p)))
    for k, other in np.ndindex(n + 1, m + 1):
        rates, chance = of_counts((k, n), (other, m)), binom.pmf(k, n, p) * binom.pmf(other, m, q)
        for place, found, truth in ((0, gap_interval(rates), gaps), (1, ratio_interval(rates), least)):
            covered[place] += chance * ~((found.low > truth) | (truth > found.high))
    assert covered.mean(1) == pytest.approx(0.972, abs=0.002)
    assert covered.min() > 0.93


def drawn(truth: list[float], times: int, error: float = 0.03) -> Iterator[Estimate]:
    """Rates with normal, unequal and correlated errors of about `error`, whose covariance is known."""
    draw, size = np.random.default_rng(len(truth)), len(truth)
    factor = np.diag(draw.uniform(0.7, 1.3, size)) + 0.2 * draw.normal(size=(size, size))
    for _ in range(times):
        yield Estimate(np.array(truth) + error * factor @ draw.standard_normal(size), error * factor)


def halves(both: Estimate) -> tuple[Estimate, Estimate]:
    half = len(both.value) // 2
    return both[:half], both[half:]


@pytest.mark.parametrize("truth", [[0.5, 0.5], [0.5, 0.8], [0.5] * 5, [0.4, 0.5, 0.5, 0.5, 0.6]])
def test_intervals_of_gaps_cover(truth: list[float]) -> None:
    estimates, lows, highs = np.array([gap_interval(rates)[:3] for rates in drawn(truth, 400)]).T
    size = max(truth) - min(truth)
    assert 0.93 <= np.mean((lows <= size) & (size <= highs)) <= (0.98 if size == 0.3 else 1.0)
    assert np.mean(lows > 0) > 0.9 if size else np.mean(lows > 0) <= 0.06
    assert size or estimates.mean() > 0.02, "the estimate is too large"


def test_intervals_of_bounded_gaps_cover_wherever_the_rates_are() -> None:
    """Imbens and Manski 2004: near the ends one side only can miss."""
    ends = drawn([0.3, 0.5, 0.6, 0.35, 0.55, 0.8], 300)
    lows, highs = np.array([gap_interval(*halves(both))[1:3] for both in ends]).T
    for size in (0.25, 0.3, 0.5):  # of the least, of the greatest, and the greatest gap within the bounds
        assert np.mean((lows <= size) & (size <= highs)) >= 0.92


def test_intervals_that_hold_together() -> None:
    assert joint_normal(1) == pytest.approx(Z)
    assert 1 - 6 * 2 * ndtr(-joint_normal(6)) == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([0.5, 0.5], [0.5, 0.5]),
        ([0.5, 0.6], [0.5, 0.5]),
        ([0.3, 0.7], [0.35, 0.75]),
        ([0.5] * 4, [0.5] * 4),
        ([0.5] * 4, [0.3, 0.5, 0.5, 0.7]),
    ],
)
def test_intervals_and_probabilities_of_differences_of_gaps(first: list[float], second: list[float]) -> None:
    truth, away = np.ptp(second) - np.ptp(first), min(np.ptp(first), np.ptp(second)) > 0.3
    found = [gap_difference(*halves(both)) for both in drawn(first + second, 400)]
    assert not any(one.why for one in found)
    estimates, lows, highs, _, fairer = np.array(found, dtype=float).T
    assert 0.92 <= np.mean((lows <= truth) & (truth <= highs)) <= (0.98 if away else 1.0)
    assert ((lows <= estimates) & (estimates <= highs)).all()
    assert ((highs < 0) == (fairer > 0.975)).all()
    assert ((lows > 0) == (fairer < 0.025)).all()
    if away:  # of the kink where gaps are 0 the probability is uniform
        shares_below = [np.mean(fairer < level) for level in (0.05, 0.5, 0.95)]
        assert shares_below == pytest.approx([0.05, 0.5, 0.95], abs=0.06)
    assert truth or max(np.mean(fairer > 0.95), np.mean(fairer < 0.05)) <= 0.08
    assert truth < 0.3 or np.median(fairer) < 0.01


def test_few_outcomes_widen_a_difference_of_gaps() -> None:
    """Its variance is that of the influence functions, and of two outcomes more in each group."""
    first, second = of_counts((0, 10), (40, 40)), of_counts((0, 10), (36, 40))
    error = np.sqrt((36 * 4 / 40**3) + 2 * (1 / 100 + 1 / 1600))
    for sign, *pair in ((-1, first, second), (1, second[::-1], first[::-1])):
        *ends, _, probability = gap_difference(*pair)
        assert sorted(ends) == pytest.approx([sign * 0.1 + k * error for k in (-Z, 0, Z)])
        assert probability == pytest.approx(ndtr(-sign * 0.1 / error))
    assert gap_difference(first, first) == (0.0, 0.0, 0.0, None, 0.5)
    undefined = first / (first * 0.0)
    for found in (
        gap_difference(first, undefined),
        gap_difference(undefined, first),
        gap_interval(undefined),
    ):
        assert np.isnan(found[:3]).all()


# Of evaluations


def test_utilities_are_not_cut_to_rates() -> None:
    people, draw = applicants(1500).drop(columns=NOT_FEATURES), np.random.default_rng(0)
    people["gain"], people["loss"] = draw.uniform(10, 90, 1500), draw.uniform(500, 900, 1500)
    won = people["granted"] * people["gain"].where(people["repaid"] == 1, -people["loss"])
    truth = won.groupby(people["sex"]).agg(["mean", "sem"])
    found = evaluate(None, people, **KEYS | LOGISTIC | {"cost": None, "gain": "gain", "loss": "loss"})
    for code, (mean, error) in enumerate(truth.to_numpy()):
        utility = found.rate("utility_gap", "dr", code)
        assert utility[:3] == pytest.approx((mean, mean - Z * error, mean + Z * error), abs=0.1 * error)
    size, error = np.ptp(truth["mean"]), np.hypot(*truth["sem"])
    assert found.fairness["utility_gap"]["dr"].high == pytest.approx(size + Z * error, abs=0.1 * error)


def with_people(rows: list[int]) -> pd.DataFrame:
    people = applicants(sum(rows)).drop(columns=["p", "steep", "truth", "chance"])
    return people.assign(who=np.repeat(np.arange(len(rows)), rows))


def test_labels_of_one_person_are_refused() -> None:
    people = with_people([290] + [1] * 10)
    people["repaid"] = people["repaid"].where(people["who"] == 0)
    told = f"^person: all {people['repaid'].notna().sum()} labels are of one person, from whom nothing"
    with pytest.raises(FairAllError, match=told):
        evaluate(None, people, **KEYS, person="who")


@pytest.mark.parametrize("rows", [[150, 150], [290] + [1] * 10, [60] * 5])
def test_few_people_have_a_wide_interval_or_none_and_the_reason(rows: list[int]) -> None:
    both = compare("new", None, with_people(rows), person="who", **KEYS, **LOGISTIC)
    value = both.first.values["dr"]
    if len(rows) == 5:
        assert value.low < value.high
        return
    fairness = [views["dr"] for shown in (both.first, both) for views in shown.fairness.values()]
    assert np.isnan([(one.low, one.high) for one in (value, both.values["dr"], *fairness)]).all()
    assert "too few to tell how much they differ" in str(value.why)
