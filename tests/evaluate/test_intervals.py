"""The bootstrap against known variances, and the coverage of the interval with a guarantee."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from fairall.evaluate import intervals
from fairall.evaluate.estimators import CLIP, ESTIMATORS, Rows, ValueSums, value_columns
from fairall.evaluate.intervals import (
    Bootstrap,
    Columns,
    as_plain,
    guaranteed_interval,
    interval,
    percentiles,
    stacked,
)
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.nuisance import fit_outcome, fit_propensity

NO_CELLS = np.zeros(100_000, dtype=int)


def mean_draws(values: np.ndarray, seed: int = 0) -> np.ndarray:
    """Bootstrap draws of a mean."""
    columns = Columns(stacked([np.ones(len(values)), values]))
    sums = Bootstrap(len(values), seed=seed).sums(columns, NO_CELLS[: len(values)], 1).overall
    assert sums.total[1] == pytest.approx(values.sum())
    return sums.draws[:, 1] / sums.draws[:, 0]


def test_the_variance_of_a_mean_is_the_analytic_one() -> None:
    values = np.random.default_rng(0).exponential(size=400)
    draws = mean_draws(values)
    assert draws.shape == (intervals.DRAWS,)
    assert draws.mean() == pytest.approx(values.mean(), abs=4 * values.std() / np.sqrt(400 * 2000))
    # 2,000 draws tell a variance to 3 %.
    assert draws.var() == pytest.approx(values.var() / 400, rel=0.13)


@pytest.mark.parametrize("n", [20_000, 20_100])
def test_blocks_have_the_variance_of_rows_in_any_order(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of sorted rows, systematic blocks would be alike, and contiguous ones far apart."""
    monkeypatch.setattr(intervals, "BLOCKS", 400)
    values = np.sort(np.random.default_rng(0).exponential(size=n))
    draws = mean_draws(values)
    # 400 blocks tell a variance to 7 %.
    assert draws.var() == pytest.approx(values.var() / n, rel=0.3)


def test_sums_within_cells() -> None:
    draw = np.random.default_rng(0)
    columns, cell = Columns(draw.normal(size=(60, 3))), draw.integers(-1, 3, size=60)
    sums = Bootstrap(60, draws=300).sums(columns, cell, 4)
    assert sums.draws.shape == (300, 4, 3)
    for one in range(4):
        np.testing.assert_allclose(sums.total[one], columns.values[cell == one].sum(0), atol=1e-12)
    np.testing.assert_array_equal(sums.draws[:, 3], 0)
    np.testing.assert_allclose(sums.overall.total, columns.values[cell >= 0].sum(0), atol=1e-12)
    np.testing.assert_allclose(sums.overall.draws, sums.draws.sum(1))
    # Every draw is a sum over rows with whole counts that add up to the number of rows.
    counts = Bootstrap(60, draws=300).sums(Columns(np.eye(60)), NO_CELLS[:60], 1).overall.draws
    assert (counts == np.round(counts)).all()
    assert (counts.sum(-1) == 60).all()
    assert counts.max() > 1


def test_draws_are_those_of_the_seed_and_paired() -> None:
    values = np.random.default_rng(0).normal(size=500)
    same = mean_draws(values, seed=3)
    np.testing.assert_array_equal(same, mean_draws(values, seed=3))
    assert np.abs(np.corrcoef(same, mean_draws(values, seed=4))[0, 1]) < 0.15
    # The same resamples in another call: only what differs between the columns varies.
    bootstrap = Bootstrap(500)
    near = values + 0.01 * np.random.default_rng(1).normal(size=500)
    first, second = (
        bootstrap.sums(Columns(stacked([one])), NO_CELLS[:500], 1).overall.draws[:, 0]
        for one in (values, near)
    )
    assert (second - first).std() < 0.02 * first.std()


def simulated(logs: int, n: int = 500) -> Iterator[tuple[Rows, Bootstrap, Bootstrap]]:
    """Rows of small logs of a logistic world, their bootstrap, and one with the models fixed."""
    draw = np.random.default_rng(0)
    people = pd.DataFrame({"x": draw.normal(size=n), "s": np.arange(n) % 2, "d": draw.random(n) < 0.5})
    template = DecisionLog.of(people.astype({"d": int}), decision="d", sensitive="s")
    for number in range(logs):
        x = draw.normal(size=n)
        accepted = draw.random(n) < expit(0.5 + 0.7 * x)
        label = np.where(accepted, draw.random(n) < expit(2.0 + 0.5 * x), np.nan)
        inputs = np.column_stack([np.ones(n), x]).astype(np.float32)
        log = replace(template, inputs=inputs, accepted=accepted, label=label)
        propensity, outcome = fit_propensity(log, "logistic", folds=4), fit_outcome(log, "logistic", folds=4)
        rows = Rows(
            expit(1.0 - 0.7 * x), propensity.probability, accepted, np.nan_to_num(label), outcome.probability
        )
        yield (
            rows,
            Bootstrap(n, propensity, outcome, seed=number, draws=150),
            Bootstrap(n, seed=number, draws=150),
        )


def test_the_estimation_of_the_models_counts() -> None:
    """Bootstrap variances of IPS and DM against their variance over logs; with fixed models they are off."""
    estimates: dict[str, list[float]] = {name: [] for name in ("ips", "dm", "dr")}
    counted: dict[str, list[float]] = {name: [] for name in estimates}
    fixed: dict[str, list[float]] = {name: [] for name in estimates}
    for rows, bootstrap, with_fixed in simulated(120):
        columns = value_columns(rows, 0.3)
        for found, one in ((counted, bootstrap), (fixed, with_fixed)):
            sums = one.sums(columns, NO_CELLS[:500], 1).overall
            for name in estimates:
                found[name].append(ESTIMATORS[name](ValueSums.of(sums.draws), 0.3).var())
                if found is counted:
                    estimates[name].append(float(ESTIMATORS[name](ValueSums.of(sums.total), 0.3)))
    ratio = {
        name: (np.mean(counted[name]) / np.var(of), np.mean(fixed[name]) / np.var(of))
        for name, of in estimates.items()
    }
    # 120 logs tell a variance to 13 %.
    for name, (own, _) in ratio.items():
        assert 0.75 < own < 1.33, name
    assert ratio["ips"][1] > 1.5, "estimated propensities lessen the variance"
    assert ratio["dm"][1] < 0.5, "the outcome model is most of the variance"


WORLDS = {  # propensities of the two kinds of people, and their probabilities of a positive label
    "moderate": ((0.5, 0.7), (0.8, 0.4)),
    "good and unlikely": ((0.02, 0.8), (0.95, 0.3)),
    "bad and unlikely": ((0.02, 0.8), (0.05, 0.9)),
}


@pytest.mark.parametrize("n", [100, 30_000])
@pytest.mark.parametrize("world", WORLDS)
def test_the_guaranteed_interval_covers(world: str, n: int) -> None:
    """With weights of up to 45 too, where clipped IPS is far off."""
    draw, cost, target = np.random.default_rng(n), 0.5, np.array([0.9, 0.5])
    propensity, positive = map(np.array, WORLDS[world])
    truth = np.mean(target * (positive - cost))
    covered, widths, clipped_off = [], [], []
    for _ in range(60):
        kind = draw.integers(2, size=n)
        revealed = draw.random(n) < propensity[kind]
        weight = revealed * target[kind] / propensity[kind]
        label = np.where(revealed, draw.random(n) < positive[kind], np.nan)
        label = np.nan_to_num(label, nan=0.5)  # any number where not revealed
        low, high = guaranteed_interval(target[kind], weight, label, cost, clip=CLIP)
        covered.append(low <= truth <= high)
        widths.append(high - low)
        clipped = np.minimum(weight, CLIP)
        clipped_off.append(np.mean(clipped * (label - cost)) - truth)
    assert np.mean(covered) >= 0.95
    if n > 1000:
        assert np.mean(widths) < 0.55
        if world != "moderate":
            assert np.abs(np.mean(clipped_off)) > 0.1, "weights beyond the limit must matter"
        else:
            assert np.mean(widths) < 0.06


def test_the_guaranteed_interval_shrinks_with_n_and_the_level() -> None:
    draw = np.random.default_rng(0)
    target, propensity = draw.random(200), draw.uniform(0.2, 0.9, 200)
    weight = (draw.random(200) < propensity) * target / propensity
    label = (draw.random(200) < 0.6).astype(float)

    def repeated(times: int, level: float = 0.95) -> tuple[float, float]:
        a, w, y = (np.tile(one, times) for one in (target, weight, label))
        return guaranteed_interval(a, w, y, 0.4, clip=CLIP, level=level)

    ends = []
    for times in (1, 2, 5, 20, 100):
        low, high = repeated(times)
        assert -0.4 <= low <= high <= 0.6, "utility per person is between -c and 1 - c"
        ends.append((low, high))
    lows, highs = np.array(ends).T
    assert (np.diff(lows) >= 0).all()
    assert (np.diff(highs) <= 0).all()
    assert lows[-1] > lows[0]
    assert highs[-1] < highs[0]
    wide = repeated(100, level=0.999)
    assert wide[0] < lows[-1]
    assert wide[1] > highs[-1]


def test_percentiles_and_plain_numbers() -> None:
    draws = np.append(np.linspace(0, 1, 2001), [np.nan, np.inf])
    assert percentiles(draws) == pytest.approx((0.025, 0.975))
    assert percentiles(draws, level=0.5) == pytest.approx((0.25, 0.75))
    assert np.isnan(percentiles(np.full(5, np.nan))).all()
    assert interval(0.4, draws) == {
        "estimate": 0.4,
        "low": pytest.approx(0.025),
        "high": pytest.approx(0.975),
    }
    assert interval(np.nan, np.full(3, np.nan)) == {"estimate": None, "low": None, "high": None}
    plain = as_plain(a=np.float64(1.5), b=np.inf)
    assert plain == {"a": 1.5, "b": None}
    assert type(plain["a"]) is float


def test_there_is_no_guaranteed_interval_where_no_value_is_possible() -> None:
    """Propensities too small by a factor of 5: the weights say that more were accepted than there are."""
    ones = np.ones(20_000)
    low, high = guaranteed_interval(ones, 5.0 * ones, ones, 0.4, clip=CLIP)
    assert np.isnan(low)
    assert np.isnan(high)
