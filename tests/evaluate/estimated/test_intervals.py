"""Intervals of rates, amounts, ratios and gaps: by hand, and by draws of a known distribution."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr
from scipy.stats import binom, t

from fairall.evaluate import compare
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
from tests.evaluate.simulated import KEYS, LOGISTIC, applicants


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
    """As docs/evaluation.md says."""
    rates = np.linspace(0.001, 0.999, 999)
    _, low, high = (end[:, None] for end in of_counts(*((k, n) for k in range(n + 1))).ends())
    chances = binom.pmf(np.arange(n + 1)[:, None], n, rates)
    covered = (chances * ((low <= rates) & (rates <= high))).sum(0)
    assert (covered.mean(), covered.min()) == pytest.approx((mean, least), abs=6e-4)


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


def test_intervals_of_gaps_and_ratios_of_two_groups_cover_exactly() -> None:
    """As docs/evaluation.md says, of all rates from 0.1 to 0.9."""
    n, m, grid = 10, 40, np.linspace(0.1, 0.9, 17)
    p, q = (rates.ravel() for rates in np.meshgrid(grid, grid))
    covered = np.zeros((2, len(p)))
    for k, other in np.ndindex(n + 1, m + 1):
        rates, chance = of_counts((k, n), (other, m)), binom.pmf(k, n, p) * binom.pmf(other, m, q)
        _, low, high, *_ = gap_interval(rates)
        ratio = ratios(rates[[0]], rates[[1]])
        covered[0] += chance * ((low <= np.abs(p - q)) & (np.abs(p - q) <= high))
        covered[1] += chance * ((ratio.low[0] <= p / q) & (p / q <= ratio.high[0]))
    assert covered.mean(1) == pytest.approx([0.972, 0.959], abs=6e-4)
    assert covered.min() > 0.93


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


def of_halves(interval: Callable[..., Interval]) -> Callable[[Estimate], Interval]:
    """The interval of the first and the second half of the rates."""
    return lambda rates: interval(rates[: len(rates.value) // 2], rates[len(rates.value) // 2 :])


@pytest.mark.parametrize(
    ("interval", "rates", "truths", "most"),
    [
        (gap_interval, [0.5, 0.8], [0.3], 0.98),
        (gap_interval, [0.5, 2.5], [2.0], 0.98),  # of amounts
        (gap_interval, [0.5] * 5, [0.0], 1.0),
        (gap_interval, [0.4, 0.5, 0.5, 0.5, 0.6], [0.2], 1.0),
        # Of lower and upper bounds: the least, the greatest, and the greatest gap within them. Near the ends
        # one side only can miss (Imbens and Manski 2004).
        (of_halves(gap_interval), [0.3, 0.5, 0.6, 0.35, 0.55, 0.8], [0.25, 0.3, 0.5], 1.0),
        (of_halves(gap_difference), [0.5] * 4, [0.0], 1.0),
        (of_halves(gap_difference), [0.3, 0.7, 0.35, 0.75], [0.0], 0.98),
        (of_halves(gap_difference), [0.5] * 4 + [0.3, 0.5, 0.5, 0.7], [0.4], 1.0),
    ],
)
def test_intervals_of_gaps_cover(
    interval: Callable[[Estimate], Interval], rates: list[float], truths: list[float], most: float
) -> None:
    """Of rates with normal, unequal and correlated errors of about 0.03, whose covariance is known."""
    draw, size = np.random.default_rng(len(rates)), len(rates)
    factor = np.diag(draw.uniform(0.7, 1.3, size)) + 0.2 * draw.normal(size=(size, size))
    drawn = np.array(rates) + 0.03 * draw.standard_normal((300, size)) @ factor.T
    found = [interval(Estimate(one, 0.03 * factor)) for one in drawn]
    estimate, low, high = np.transpose([one[:3] for one in found])
    assert ((low <= estimate) & (estimate <= high)).all()
    for truth in truths:  # 300 intervals of 95 % cover in 92 % or more
        assert 0.92 <= np.mean((low <= truth) & (truth <= high)) <= most
    above = np.mean(low > 0)
    assert above > 0.9 if truths[0] > 0 else above <= 0.07


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
    for found in (gap_difference(first, undefined), gap_interval(undefined)):
        assert np.isnan(found[:3]).all()


# Of evaluations


@pytest.mark.parametrize("rows", [[150, 150], [290] + [1] * 10])
def test_few_people_have_no_interval_and_the_reason(rows: list[int]) -> None:
    people = applicants(sum(rows)).assign(who=np.repeat(np.arange(len(rows)), rows))
    options = KEYS | LOGISTIC | {"drop": ["p", "steep", "truth", "chance"], "person": "who"}
    both = compare("new", None, people, **options)
    value = both.first.values["dr"]
    fairness = [views["dr"] for shown in (both.first, both) for views in shown.fairness.values()]
    assert np.isnan([(one.low, one.high) for one in (value, both.values["dr"], *fairness)]).all()
    assert "too few to tell how much they differ" in str(value.why)
