import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu, norm, trim_mean

from reproduction.aggregates import (
    Estimate,
    improvements,
    interquartile_mean,
    overall_ranks,
    probability_of_improvement,
    task_ranks,
)

RNG = np.random.default_rng(0)


def test_interquartile_mean_by_hand_and_over_all_tasks() -> None:
    assert interquartile_mean([np.array([0.0, 1.0, 2.0, 100.0])]).value == 1.5
    # The middle half of all scores together, not of each task.
    tasks = [np.array([0.0, 1.0]), np.array([2.0, 30.0]), RNG.normal(size=12)]
    assert interquartile_mean(tasks).value == pytest.approx(trim_mean(np.concatenate(tasks), 0.25))


def test_bootstrap_stays_within_tasks() -> None:
    # Each task has one value: there is nothing to draw, however far tasks are apart.
    constant = [np.full(5, 1.0), np.full(5, 9.0)]
    assert interquartile_mean(constant) == Estimate(5.0, 5.0, 5.0)
    estimate = interquartile_mean([RNG.normal(size=10), 5 + RNG.normal(size=10)])
    assert estimate.low < estimate.value < estimate.high
    assert estimate.high - estimate.low < 2


def test_bootstrap_of_the_interquartile_mean_by_brute_force() -> None:
    """Every draw of two tasks with three seeds: 27 × 27."""
    tasks = [np.array([0.0, 1.0, 4.0]), np.array([2.0, 3.0, 9.0])]
    each = [list(itertools.product(own, repeat=3)) for own in tasks]
    exact = [trim_mean([*a, *b], 0.25) for a, b in itertools.product(*each)]
    found = interquartile_mean(tasks)
    # Draws of a discrete distribution: their quantiles are within one step of the exact ones.
    for got, share in ((found.low, 0.025), (found.high, 0.975)):
        below, above = np.quantile(exact, (share - 0.012, share + 0.012))
        assert below <= got <= above


def test_interval_of_the_interquartile_mean_covers() -> None:
    """Of a symmetric distribution the mean; ten seeds of each of eight tasks."""
    centres = np.linspace(-0.5, 0.5, 8)
    covered = []
    for _ in range(150):
        low, high = interquartile_mean([centre + RNG.normal(size=10) for centre in centres])[1:]
        covered.append(low <= 0 <= high)
    assert 0.88 <= np.mean(covered) <= 0.99


def test_probability_of_improvement_is_mann_whitneys() -> None:
    first = [RNG.normal(size=10), RNG.integers(0, 3, 7).astype(float)]
    second = [0.5 + RNG.normal(size=8), RNG.integers(0, 3, 9).astype(float)]
    expected = [mannwhitneyu(x, y).statistic / (len(x) * len(y)) for x, y in zip(first, second, strict=True)]
    found = probability_of_improvement(first, second)
    assert found.value == pytest.approx(np.mean(expected))
    assert found.low < found.value < found.high
    # The seeds of the opposite are drawn in another order.
    assert probability_of_improvement(second, first).value == pytest.approx(found.reversed().value)


def test_probability_of_improvement_over_itself_and_by_far() -> None:
    tasks = [RNG.normal(size=10), RNG.normal(size=10)]
    itself = probability_of_improvement(tasks, tasks)
    assert itself.value == 0.5
    # Both are drawn independently, although the seeds are the same.
    assert itself.low < 0.4 < 0.6 < itself.high
    assert probability_of_improvement([own + 100 for own in tasks], tasks) == Estimate(1.0, 1.0, 1.0)
    assert probability_of_improvement([np.ones(5)], [np.ones(5)]) == Estimate(0.5, 0.5, 0.5)


def test_interval_of_the_probability_of_improvement_covers() -> None:
    truth, covered = norm.cdf(0.5 / np.sqrt(2)), []
    for _ in range(150):
        x, y = ([shift + RNG.normal(size=10) for _ in range(5)] for shift in (0.5, 0.0))
        _, low, high = probability_of_improvement(x, y)
        covered.append(low <= truth <= high)
    assert 0.88 <= np.mean(covered) <= 0.99


def test_pairs_are_compared_on_the_tasks_that_both_have() -> None:
    low, high = np.zeros(4), np.ones(4)
    scores = {"a": {1: high, 2: low}, "b": {1: low, 3: high}, "c": {2: high}}
    found = improvements(scores)
    assert found["a", "b"].value == 1.0
    assert found["b", "a"].value == 0.0
    assert found["c", "a"].value == 1.0
    assert ("b", "c") not in found
    assert overall_ranks(["a", "b", "c"], found) == {"a": 2, "b": 2, "c": 1}


def series(*values: float) -> pd.Series:
    return pd.Series(values, dtype=float)


def test_ranks_of_a_task_have_ties_where_chance_explains_the_difference() -> None:
    base = RNG.normal(size=10)
    noise = np.array([0.01, -0.02, 0.03, -0.04, 0.05, -0.06, 0.07, -0.08, 0.09, -0.1])
    values = {
        "best": series(*base + 1), "as good": series(*base + 1 + noise), "worse": series(*base),
        "worst": series(*base - 1),
    }  # fmt: skip
    up = task_ranks(values, higher_is_better=True)
    assert up == {"best": 1, "as good": 1, "worse": 3, "worst": 4}
    down = task_ranks(values, higher_is_better=False)
    assert down == {"best": 3, "as good": 3, "worse": 2, "worst": 1}


def test_ten_seeds_tell_fourteen_methods_apart() -> None:
    # With Holm's correction over all 91 pairs no p would be below 0.17.
    base = RNG.normal(size=10)
    values = {str(k): series(*base - k + RNG.normal(0, 0.01, 10)) for k in range(14)}
    assert list(task_ranks(values, higher_is_better=True).values()) == list(range(1, 15))
    # Nine of ten seeds are enough among three methods, and not among fourteen of which twelve are alike.
    signs = np.array([1.0, -1.0] * 5)
    nine = values["0"] + [*np.linspace(0.1, 0.2, 9), -0.05]
    few = {"nine": nine, "0": values["0"], "1": values["1"]}
    assert task_ranks(few, higher_is_better=True) == {"nine": 1, "0": 2, "1": 3}
    alike = {f"alike {k}": values["0"] + signs * RNG.uniform(0.001, 0.01, 10) for k in range(12)}
    assert task_ranks(alike | {"nine": nine, "0": values["0"]}, higher_is_better=True)["0"] == 1


def test_methods_that_cannot_be_compared_share_a_rank() -> None:
    assert task_ranks({"one": series(1.0), "two": series(2.0)}, higher_is_better=True) == {"one": 1, "two": 1}
    assert task_ranks({"alone": series(1.0, 2.0)}, higher_is_better=True) == {"alone": 1}
