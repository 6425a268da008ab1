"""Printed values beside predictive intervals of ten seeds; the tables are in test_golden.py."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fairall import Result
from fairall.display import PageTable
from reproduction.plan import with_runs
from reproduction.printed import (
    collapsed,
    draw_printed,
    is_inside,
    predictive_intervals,
    predictive_pooled_std,
    printed_items,
)
from tests.reproduction.collection import planned, result

UTILITY = "effective_utility"


def records(run: Result) -> list[pd.DataFrame]:
    """Records of means and of standard deviations of a run by measure."""
    needed = planned("paper_harsh", "dataset=credit", f"seeds={len(run.seeds)}")
    items = printed_items(with_runs(needed, [run]), "printed_harsh_corrected", setting="", section="")
    tables = [item.records for item in items if isinstance(item, PageTable)]
    return [of.set_index("measure") if len(of) else of for of in tables]


def near_print(collapsing: int = 0, since: int = 101, seeds: int = 50) -> Result:
    """A run near the printed 19.4 (1.0), in which some seeds accept nobody from a time step on."""
    run = result("model=fairlog", "dataset=credit", f"seeds={seeds}", shift=0.194, number=1)
    gone = (run.steps["seed"] < collapsing) & (run.steps["time_step"] >= since)
    return replace(run, steps=run.steps.assign(acceptance_rate=run.steps["acceptance_rate"].mask(gone, 0.0)))


@pytest.mark.parametrize(("gone", "judged_on"), [(0, "all"), (5, "all"), (6, "survivors"), (42, "nobody")])
def test_more_than_a_tenth_collapsed_is_judged_on_survivors(gone: int, judged_on: str) -> None:
    run = near_print(gone)
    every, survivors = run.values(UTILITY), run.values(UTILITY)[gone:]
    for table, statistic, paper in zip(records(run), ("mean", "std"), (0.194, 0.01), strict=True):
        one = table.loc[UTILITY]
        assert [
            one[key] for key in ("seeds", "collapsed", "printed", "ours", "of_survivors")
        ] == pytest.approx(
            [50, gone / 50, paper, getattr(every, statistic)(), getattr(survivors, statistic)()]
        )
        assert one["on_survivors"] == (judged_on != "all")
        ends = one["predictive_low"], one["predictive_high"]
        if judged_on == "nobody":
            assert (*ends, one["inside"]) == (None, None, None)
        else:
            of = predictive_intervals((every if judged_on == "all" else survivors).to_numpy(), 10)
            assert ends == pytest.approx(getattr(of, statistic))
            assert one["inside"] == is_inside(one["printed"], *ends)


def test_too_few_seeds_have_no_deviation_or_say_nothing() -> None:
    assert records(near_print(49))[1].loc[UTILITY, "of_survivors"] is None
    run = near_print()
    run.per_seed.loc[1:, UTILITY] = np.nan
    assert [UTILITY in of.index for of in records(run)] == [True, False]
    assert [len(of) for of in records(near_print(seeds=9))] == [0, 0]


def test_a_seed_that_accepts_again_has_not_collapsed() -> None:
    for since, n in ((101, 2), (102, 0)):
        gone = collapsed(near_print(2, since, 10))
        assert gone is not None
        assert gone.sum() == n
    run = near_print(seeds=10)
    assert collapsed(replace(run, steps=run.steps.drop(columns="acceptance_rate"))) is None


def test_rounding_of_printed_values_is_allowed_for() -> None:
    values = (0.1894, 0.1896, 0.2104, 0.2106)
    assert [is_inside(one, 0.19, 0.21) for one in values] == [False, True, True, False]


def test_the_picture_has_every_printed_mean_inside_or_outside() -> None:
    means, _ = records(near_print())
    for axes, (_, one) in zip(draw_printed(means.reset_index()).axes, means.iterrows(), strict=True):
        bar, dot = axes.get_lines()
        drawn = [*np.asarray(bar.get_xdata()), *np.asarray(dot.get_xdata())]
        assert drawn == pytest.approx(
            [100 * one[of] for of in ("predictive_low", "predictive_high", "printed")]
        )
        assert dot.get_label() == f"printed mean, {'inside' if one['inside'] else 'outside'}"


@pytest.mark.parametrize(
    ("draw", "of_means", "of_deviations"),
    [
        pytest.param(lambda rng, size: rng.normal(3.0, 2.0, size), 0.935, 0.92, id="normal"),
        pytest.param(lambda rng, size: rng.gamma(2.0, 1.0, size), 0.93, 0.89, id="gamma"),
    ],
)
def test_coverage_of_predictive_intervals(
    draw: Callable[..., np.ndarray], of_means: float, of_deviations: float
) -> None:
    """Shares of new samples of ten whose mean and standard deviation the intervals contain.

    Without the uncertainty of the fifty values, means of a normal distribution would have 0.92. The third
    share is of the deviation of pooled series, whose steps differ less than they do.
    """
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(200):
        found = predictive_intervals(draw(rng, 50), 10)
        new = draw(rng, (200, 10))
        statistics = ((found.mean, new.mean(1)), (found.std, new.std(1, ddof=1)))
        series = draw(rng, (80, 1)) + 0.7 * rng.normal(size=(80, 20))
        low, high = predictive_pooled_std(series[:50], 10)
        pooled = [low <= own.std() <= high for own in np.split(series[50:], 3)]
        covered.append([*(np.mean((a <= of) & (of <= b)) for (a, b), of in statistics), np.mean(pooled)])
    shares = np.mean(covered, axis=0)
    assert (shares > [of_means, of_deviations, 0.87]).all()
    assert (shares < [0.96, 0.96, 0.97]).all()


def test_predictive_intervals_follow_the_unit() -> None:
    values = np.random.default_rng(1).normal(0.2, 0.01, 12)
    once, hundredfold = (predictive_intervals(of, 10) for of in (values, 100 * values + 1))
    assert hundredfold.mean == pytest.approx([100 * end + 1 for end in once.mean])
    assert hundredfold.std == pytest.approx([100 * end for end in once.std])
    assert predictive_intervals(np.full(10, 0.5), 10) == ((0.5, 0.5), (0.0, 0.0))
