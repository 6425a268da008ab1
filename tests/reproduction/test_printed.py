"""Printed values beside predictive intervals of ten seeds; the tables are in test_golden.py."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairall import Result
from fairall.display import PageTable
from reproduction.plan import EFFECTIVE, with_runs
from reproduction.printed import (
    collapsed,
    predictive_interval,
    printed_items,
)
from tests.reproduction.collection import planned, result

UTILITY = "effective_utility"


def records(run: Result) -> list[pd.DataFrame]:
    """Records of means and of standard deviations of the effective utility of a run."""
    needed = planned("paper_harsh", "dataset=credit", f"seeds={len(run.seeds)}")
    items = printed_items(with_runs(needed, [run]), "printed", setting="", section="")
    tables = [item.records for item in items if isinstance(item, PageTable)]
    return [of[of["measure"] == EFFECTIVE[0].heading] if len(of) else of for of in tables]


def near_print(collapsing: int = 0, since: int = 101, seeds: int = 50) -> Result:
    """A run near the printed 19.4 (1.0), in which some seeds accept nobody from a time step on."""
    run = result("model=fairlog", "dataset=credit", f"seeds={seeds}", shift=0.194, number=1)
    gone = (run.steps["seed"] < collapsing) & (run.steps["time_step"] >= since)
    return replace(run, steps=run.steps.assign(acceptance_rate=run.steps["acceptance_rate"].mask(gone, 0.0)))


@pytest.mark.parametrize("gone", [0, 5, 6, 42, 49])
def test_more_than_a_tenth_collapsed_is_judged_on_survivors(gone: int) -> None:
    run = near_print(gone)
    values, survivors = run.values(UTILITY), run.values(UTILITY)[gone:]
    drawn_from = survivors if gone > 5 else values
    for table, statistic, paper in zip(records(run), ("mean", "std"), (0.194, 0.01), strict=True):
        ((_, one),) = table.iterrows()
        low = high = np.nan
        if len(drawn_from) >= 10:
            low, high = predictive_interval(drawn_from.to_numpy()[:, None], 10, statistic)
            assert one["inside"] == (low - 0.0005 <= paper <= high + 0.0005)
        shown = [paper, getattr(values, statistic)(), getattr(survivors, statistic)(), low, high]
        keys = ["printed", "ours", "of_survivors", "predictive_low", "predictive_high"]
        assert [*one[keys]] == pytest.approx(shown, nan_ok=True)


def test_a_single_seed_has_no_deviation_and_nine_say_nothing() -> None:
    run = near_print()
    run.per_seed.loc[1:, UTILITY] = np.nan
    assert [len(of) for of in records(run)] == [1, 0]
    assert not any(len(of) for of in records(near_print(seeds=9)))


@pytest.mark.parametrize(("since", "n"), [(101, 2), (102, 0)])
def test_a_seed_that_accepts_again_has_not_collapsed(since: int, n: int) -> None:
    assert collapsed(near_print(2, since, 10)).sum() == n


@pytest.mark.parametrize(("beyond", "inside"), [(0.0004, True), (0.0006, False)])
def test_rounding_of_printed_values_is_allowed_for(beyond: float, inside: bool) -> None:
    run = near_print()
    low, _ = predictive_interval(run.values(UTILITY).to_numpy()[:, None], 10, "mean")
    run.per_seed[UTILITY] += 0.194 + beyond - low
    assert [*records(run)[0]["inside"]] == [inside]


def test_coverage_of_predictive_intervals() -> None:
    """Shares of new samples of ten whose mean and standard deviation the intervals contain.

    Without the uncertainty of the fifty values, means would have 0.92. The third share is of the deviation of
    pooled series, whose steps differ less than they do.
    """
    rng, covered = np.random.default_rng(0), []
    for _ in range(200):
        values, new = rng.normal(3.0, 2.0, (50, 1)), rng.normal(3.0, 2.0, (200, 10))
        series = rng.normal(3.0, 2.0, (80, 1)) + 0.7 * rng.normal(size=(80, 20))
        cases = (
            (values, "mean", new.mean(1)),
            (values, "std", new.std(1, ddof=1)),
            (series[:50], "std", np.array([of.std() for of in np.split(series[50:], 3)])),
        )
        ends = [(*predictive_interval(of, 10, statistic), further) for of, statistic, further in cases]
        covered.append([np.mean((low <= further) & (further <= high)) for low, high, further in ends])
    shares = np.mean(covered, axis=0)
    assert (shares > (0.935, 0.92, 0.87)).all()
    assert (shares < 0.97).all()
