from collections.abc import Iterable

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, trim_mean

from reproduction.aggregates import (
    TaskKey,
    better_on_task,
    improvements,
    interquartile_mean,
    middle,
    probability_of_improvement,
    ranks,
    surely_better,
)

POLICIES = ("harsh", "lenient")


def series(*values: float) -> pd.Series:
    return pd.Series(values, dtype=float)


def scores(*of: Iterable[float]) -> dict[TaskKey, pd.Series]:
    """Scores of a method: one task per data set."""
    return {(f"data {k}", "harsh"): series(*own) for k, own in enumerate(of)}


def normal(rng: np.random.Generator, centres: Iterable[float], n: int = 20) -> dict[TaskKey, pd.Series]:
    """Scores of a method on data sets with some means, each with two initial policies."""
    return {
        (f"data {k}", policy): series(*(centre + rng.normal(size=n)))
        for k, centre in enumerate(centres)
        for policy in POLICIES
    }


def test_interquartile_mean_by_hand_and_over_all_tasks() -> None:
    assert interquartile_mean(scores([0.0, 1.0, 2.0, 100.0])).value == 1.5
    # The middle half of all scores together, not of each task.
    rng = np.random.default_rng(0)
    tasks = [np.array([0.0, 1.0]), np.array([2.0, 30.0]), rng.normal(size=12)]
    assert interquartile_mean(scores(*tasks)).value == pytest.approx(trim_mean(np.concatenate(tasks), 0.25))


def test_the_middle_by_weight_is_that_of_repeated_scores() -> None:
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=9), rng.integers(0, 4, size=(5, 9))
    weights[:, 0] += -weights.sum(1) % 4  # so that a quarter is a whole number of scores
    repeated = [trim_mean(np.repeat(values, own), 0.25) for own in weights]
    assert middle(values, weights) == pytest.approx(repeated)
    # A quarter of six scores is one and a half: half of 1, all of 2 and 3, half of 5.
    assert middle(np.array([5.0, 0.0, 1.0, 2.0, 9.0, 3.0])) == pytest.approx((0.5 + 2 + 3 + 2.5) / 3)


@pytest.mark.whole
def test_the_interval_of_the_interquartile_mean_covers_other_data_sets() -> None:
    """Seven data sets that differ more than their replicates."""
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(80):
        _, low, high = interquartile_mean(normal(rng, rng.normal(0, 3, 7)))
        covered.append(low <= 0 <= high)
    assert np.mean(covered) >= 0.88


def test_initial_policies_of_a_data_set_are_one_cluster() -> None:
    rng = np.random.default_rng(0)
    once = {key: own for key, own in normal(rng, [0.0, 1.0, 5.0]).items() if key[1] == "harsh"}
    twice = once | {(dataset, "lenient"): own for (dataset, _), own in once.items()}
    one, two = interquartile_mean(once), interquartile_mean(twice)
    assert two == pytest.approx(one)
    assert probability_of_improvement(once, {key: 0 * own for key, own in once.items()}) == pytest.approx(
        probability_of_improvement(twice, {key: 0 * own for key, own in twice.items()})
    )


def test_there_is_no_interval_where_nothing_varies() -> None:
    for equal in (scores([2.0]), scores([2.0, 2.0], [2.0, 2.0])):
        value, low, high = interquartile_mean(equal)
        assert value == 2.0
        assert np.isnan([low, high]).all()
    # Within data sets nothing varies, between them it does.
    _, low, high = interquartile_mean(scores([1.0] * 5, [9.0] * 5))
    assert low < high


@pytest.mark.parametrize("won", range(8))
def test_of_data_sets_won_or_lost_the_interval_is_clopper_and_pearsons(won: int) -> None:
    better = scores(*[[1.0] * 5] * won, *[[-1.0] * 5] * (7 - won))
    value, low, high = probability_of_improvement(better, scores(*[[0.0] * 5] * 7)) or (0.0, 0.0, 0.0)
    assert value == won / 7
    assert low == pytest.approx(beta.ppf(0.025, won, 8 - won) if won else 0.0, abs=0.02)
    assert high == pytest.approx(beta.ppf(0.975, won + 1, 7 - won) if won < 7 else 1.0, abs=0.02)


def test_replicates_of_two_methods_are_compared_in_pairs() -> None:
    # By far better in each split, though splits differ more.
    rng = np.random.default_rng(0)
    second = normal(rng, [0.0, 1.0])
    first = {key: (own + 0.1).sample(frac=1, random_state=1) for key, own in second.items()}
    found = probability_of_improvement(first, second)
    assert found is not None
    assert found.value == 1.0
    assert 0 < found.low < found.high == 1.0
    assert probability_of_improvement(second, first) == pytest.approx(found.reversed(), abs=0.02)
    itself = probability_of_improvement(first, first)
    assert itself is not None
    assert itself.low < itself.value == 0.5 < itself.high
    assert probability_of_improvement(first, scores([])) is None


def test_the_interval_of_the_probability_of_improvement_covers_other_data_sets() -> None:
    """The method is better with probabilities that are uniform over data sets."""
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(80):
        share = rng.uniform(size=7)
        first = scores(*(np.sign(of - rng.uniform(size=20)) for of in share))
        found = probability_of_improvement(first, {key: 0 * own for key, own in first.items()})
        assert found is not None
        covered.append(found.low <= 0.5 <= found.high)
    assert np.mean(covered) >= 0.9


def test_pairs_are_compared_on_the_tasks_that_both_have() -> None:
    low, high = series(0, 0, 0, 0, 0, 0), series(1, 1, 1, 1, 1, 1)
    one, two, three = (("credit", "harsh"), ("fico", "harsh"), ("law", "harsh"))
    of = {"a": {one: high, two: low}, "b": {one: low, three: high}, "c": {two: high}}
    found = improvements(of)
    assert found["a", "b"].value == 1.0
    assert found["b", "a"].value == 0.0
    assert found["c", "a"].value == 1.0
    assert ("b", "c") not in found
    assert surely_better(of) == {("a", "b"), ("c", "a")}
    assert surely_better({"a": of["a"]}) == set()


@pytest.mark.parametrize("replicates", [10, pytest.param(20, marks=pytest.mark.whole)])
def test_ranks_of_identical_methods_do_not_differ(replicates: int) -> None:
    """Of boards of 14 identical methods at most 5 % may have a rank other than 1; splits are common."""
    rng = np.random.default_rng(2)
    on_task, over_tasks = [], []
    for _ in range(100):
        split = rng.normal(0, 2, replicates)
        of = {str(k): series(*(split + rng.normal(size=replicates))) for k in range(14)}
        on_task.append(bool(better_on_task(of, higher_is_better=True)))
    for _ in range(5):
        board = {str(k): normal(rng, [0.0] * 7, replicates) for k in range(14)}
        over_tasks.append(bool(surely_better(board)))
    assert np.mean(on_task) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 100)
    assert np.sum(over_tasks) <= 1  # two of five have a probability of 0.02


def test_a_better_method_is_found_among_fourteen() -> None:
    """20 replicates, better by 1.5 standard deviations of a method within splits, which differ more."""
    rng = np.random.default_rng(3)
    share, covered = [], []
    for _ in range(20):
        split = rng.normal(0, 2, 20)
        of = {str(k): series(*(split + 1.5 * (k == 0) + rng.normal(size=20))) for k in range(14)}
        better = better_on_task(of, higher_is_better=True)
        share.append(np.mean([("0", str(k)) in better for k in range(1, 14)]))
        covered.append(ranks([*of], better)["0"].best == 1)
    assert np.mean(share) > 0.6
    assert all(covered)
    # Over seven data sets nothing is left to find.
    board = {str(k): normal(rng, [1.5 * (k == 0)] * 7) for k in range(14)}
    assert ranks([*board], surely_better(board))["0"] == (1, 1)


def test_ranks_of_a_task_have_ties_where_chance_explains_the_difference() -> None:
    base = np.random.default_rng(0).normal(size=10)
    noise = np.array([0.01, -0.02, 0.03, -0.04, 0.05, -0.06, 0.07, -0.08, 0.09, -0.1])
    values = {
        "best": series(*base + 1),
        "as good": series(*base + 1 + noise),
        "worse": series(*base),
        "worst": series(*base - 1),
    }
    up = ranks([*values], better_on_task(values, higher_is_better=True))
    assert up == {"best": (1, 2), "as good": (1, 2), "worse": (3, 3), "worst": (4, 4)}
    down = ranks([*values], better_on_task(values, higher_is_better=False))
    assert down == {"best": (3, 4), "as good": (3, 4), "worse": (2, 2), "worst": (1, 1)}


def test_ten_seeds_tell_fourteen_methods_apart() -> None:
    # With Holm's correction of Wilcoxon's test over all 91 pairs no p would be below 0.17.
    rng = np.random.default_rng(0)
    base = rng.normal(size=10)
    values = {str(k): series(*base - k + rng.normal(0, 0.01, 10)) for k in range(14)}
    found = ranks([*values], better_on_task(values, higher_is_better=True))
    assert list(found.values()) == [(k, k) for k in range(1, 15)]


def test_methods_that_cannot_be_compared_share_a_rank() -> None:
    one = {"one": series(1.0), "two": series(2.0)}
    assert better_on_task(one, higher_is_better=True) == set()
    assert ranks([*one], set()) == {"one": (1, 2), "two": (1, 2)}
    assert better_on_task({"alone": series(1.0, 2.0)}, higher_is_better=True) == set()
