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
    Interval,
    Sample,
    Z,
    differences,
    gap_difference,
    gap_interval,
    ratios,
)
from tests.evaluate.simulated import KEYS, applicants

LOGISTIC = {"propensity_model": "logistic", "outcome_model": "logistic"}


def of_counts(*counts: tuple[int, int], rows: int = 1) -> Estimate:
    """The share of k among n people in each group, with equal rows each."""
    people = [n for _, n in counts]
    a = np.concatenate([np.arange(n) < k for k, n in counts]).astype(float).repeat(rows)
    group, person = (
        codes.repeat(rows) for codes in (np.repeat(range(len(counts)), people), np.arange(sum(people)))
    )
    by_group = Sample(len(a), person=person).by(group, len(counts))
    return (by_group.mean(a) / by_group.mean(a * 0.0 + 1.0)).on(by_group.support(a * 0.0 + 1.0))


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


@pytest.mark.parametrize("rows", [[2] * 5, [2, 2], [2, 2, 2], [1, 2, 3, 4], [590] + [1] * 10])
def test_degrees_of_freedom_are_those_of_bell_and_mccaffrey(rows: list[int]) -> None:
    """Of the sum of squares of φ, for clusters of one outcome each, from its covariance matrix."""
    share = np.array(rows) / np.sum(rows)
    residual = np.eye(len(rows)) - share  # of the outcome of each cluster less their mean
    covariance = (share[:, None] * residual) @ (share[:, None] * residual).T
    person = np.repeat(np.arange(len(rows)), rows)
    sample = Sample(len(person), person=person)
    support = sample.support(np.ones(len(person)), cut=False)
    expected = np.trace(covariance) ** 2 / np.trace(covariance @ covariance)
    assert support.freedom == pytest.approx(expected)
    assert support.shrinkage == pytest.approx(np.trace(covariance) / (share**2).sum())
    found = sample.mean(person % 2.0).on(support).interval()
    assert np.isnan(found.low) == (expected < LEAST_FREEDOM)
    assert found.why is None or f"who count as {1 / (share**2).sum():.1f} with" in found.why


def test_amounts_have_a_width_and_their_difference_from_0_a_probability() -> None:
    sample = Sample(100)
    support = sample.support(np.ones(100), lowest=-300.0, highest=50.0, cut=False)
    for good in (100, 80):
        gains = pd.Series(np.where(np.arange(100) < good, 50.0, -300.0))
        estimate, mean = sample.mean(gains.to_numpy()).on(support), gains.mean()
        error = np.sqrt(gains.sem() ** 2 + 2.0 * (350 / 100) ** 2)  # with the variance of two outcomes
        half = t.isf(ndtr(-3.0), 99) * error
        found = estimate.difference_interval(3.0)
        assert found[:3] == pytest.approx((mean, mean - half, mean + half))
        assert found.probability == pytest.approx(t.cdf(mean / error, 99))
        assert estimate.interval(k=3.0)[:3] == found[:3]


def test_gaps_of_amounts_are_not_cut() -> None:
    draw, group = np.random.default_rng(0), np.arange(4000) % 2
    gains, by_group = draw.normal(300.0 * group, 100.0), Sample(4000).by(group, 2)
    support = by_group.support(np.ones(4000), lowest=-500.0, highest=800.0, cut=False)
    means = (by_group.mean(gains) / by_group.mean(np.ones(4000))).on(support)
    half = Z * np.hypot(*means.error)
    expected = np.ptp(means.value) + np.array([0.0, -half, half])
    assert gap_interval(means)[:3] == pytest.approx(expected, abs=0.1 * half)


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
    assert found.value[2, 1] == pytest.approx(4 / 75)
    for g, h in ((0, 1), (1, 0), (2, 1)):
        for end in ("low", "high"):
            difference = differences(rates[[g]], rates[[h]] * getattr(found, end)[g, h], 2.2)
            assert getattr(difference, end).item() == pytest.approx(0.0, abs=1e-9)
    nobody = ratios(rates, rates * 0.0)
    assert np.isnan(nobody.value).all()
    assert np.isposinf(nobody.high).all()


def test_intervals_of_gaps_and_ratios_of_two_groups_cover_exactly() -> None:
    n, m, grid = 10, 40, np.linspace(0.1, 0.9, 17)
    p, q = (rates.ravel() for rates in np.meshgrid(grid, grid))
    covered = np.zeros((2, len(p)))
    for k, other in np.ndindex(n + 1, m + 1):
        rates, chance = of_counts((k, n), (other, m)), binom.pmf(k, n, p) * binom.pmf(other, m, q)
        gap, ratio = gap_interval(rates), ratios(rates[[0]], rates[[1]])
        covered[0] += chance * ((gap.low <= np.abs(p - q)) & (np.abs(p - q) <= gap.high))
        covered[1] += chance * ((ratio.low[0] <= p / q) & (p / q <= ratio.high[0]))
    assert covered.mean(1) == pytest.approx([0.972, 0.959], abs=0.002)
    assert covered.min() > 0.93


def drawn(truth: list[float], times: int, error: float = 0.03) -> Iterator[Estimate]:
    """Rates with normal, unequal and correlated errors of about `error`, whose covariance is known."""
    draw, size = np.random.default_rng(len(truth)), len(truth)
    factor = np.diag(draw.uniform(0.7, 1.3, size)) + 0.2 * draw.normal(size=(size, size))
    for _ in range(times):
        yield Estimate(np.array(truth) + error * factor @ draw.standard_normal(size), error * factor)


def covers(truth: float, found: list[Interval]) -> float:
    """The share of intervals that contain the truth."""
    return float(np.mean([interval.low <= truth <= interval.high for interval in found]))


@pytest.mark.parametrize("truth", [[0.5, 0.8], [0.5] * 5, [0.4, 0.5, 0.5, 0.5, 0.6]])
def test_intervals_of_gaps_cover(truth: list[float]) -> None:
    found, size = [gap_interval(rates) for rates in drawn(truth, 400)], max(truth) - min(truth)
    assert 0.93 <= covers(size, found) <= (0.98 if len(truth) == 2 else 1.0)
    above = np.mean([interval.low > 0 for interval in found])
    assert above > 0.9 if size else above <= 0.06
    assert size or np.mean([interval.estimate for interval in found]) > 0.02, "the estimate is too large"


def test_intervals_of_bounded_gaps_cover_wherever_the_rates_are() -> None:
    """Imbens and Manski 2004: near the ends one side only can miss."""
    found = [gap_interval(both[:3], both[3:]) for both in drawn([0.3, 0.5, 0.6, 0.35, 0.55, 0.8], 300)]
    for size in (0.25, 0.3, 0.5):  # of the least, of the greatest, and the greatest gap within the bounds
        assert covers(size, found) >= 0.92


@pytest.mark.parametrize("rates", [[0.5] * 4, [0.3, 0.7, 0.35, 0.75], [0.5] * 4 + [0.3, 0.5, 0.5, 0.7]])
def test_intervals_of_differences_of_gaps_cover(rates: list[float]) -> None:
    half, truth = len(rates) // 2, np.ptp(rates[len(rates) // 2 :]) - np.ptp(rates[: len(rates) // 2])
    found = [gap_difference(both[:half], both[half:]) for both in drawn(rates, 400)]
    assert 0.92 <= covers(truth, found) <= (0.98 if rates[0] == 0.3 else 1.0)
    assert all(interval.low <= interval.estimate <= interval.high for interval in found)
    assert truth < 0.3 or np.mean([interval.low > 0 for interval in found]) > 0.9


def test_few_outcomes_widen_a_difference_of_gaps() -> None:
    """Its variance is that of the influence functions, and of two outcomes more in each group."""
    first, second = of_counts((0, 10), (40, 40)), of_counts((0, 10), (36, 40))
    error = np.sqrt((36 * 4 / 40**3) + 2 * (1 / 100 + 1 / 1600))
    for sign, *pair in ((-1, first, second), (1, second[::-1], first[::-1])):
        assert sorted(gap_difference(*pair)[:3]) == pytest.approx(
            [sign * 0.1 + k * error for k in (-Z, 0, Z)]
        )
    assert gap_difference(first, first) == Interval(0.0, 0.0, 0.0)
    undefined = first / (first * 0.0)
    for found in (
        gap_difference(first, undefined),
        gap_difference(undefined, first),
        gap_interval(undefined),
    ):
        assert np.isnan(found[:3]).all()


# Of evaluations


def with_people(rows: list[int]) -> pd.DataFrame:
    people = applicants(sum(rows)).drop(columns=["p", "steep", "truth", "chance"])
    return people.assign(who=np.repeat(np.arange(len(rows)), rows))


def test_labels_of_one_person_are_refused() -> None:
    people = with_people([290] + [1] * 10)
    people["repaid"] = people["repaid"].where(people["who"] == 0)
    told = "^person: all 183 labels are of one person, from whom nothing follows for others"
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
