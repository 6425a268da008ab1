"""Printed means and standard deviations beside those that as many seeds of ours would give."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairall import Result
from fairall.display import (
    BLUE,
    GREY,
    ORANGE,
    Cell,
    Item,
    PageFigure,
    PageTable,
    Row,
    handles_of,
    legend_below,
    mean_interval,
    number,
)
from fairall.metrics import Quantity, Spread
from fairall.report import dataset_label, method_label
from reproduction.figures import Point, draw_rows
from reproduction.items import difference_of, table_of
from reproduction.paper import HALF_DIGIT, PAPER_SEEDS
from reproduction.plan import EFFECTIVE, TEMPORAL, Planned
from reproduction.tables import printed_values
from reproduction.words import words_of

# The printed temporal measures are of drawn decisions.
MEASURES = (*EFFECTIVE, *(measure.sampled() for measure in TEMPORAL))
DRAWS = 10_000  # of a predictive interval
QUANTILES = (0.025, 0.975)  # its ends
MANY = 0.1  # share of collapsed seeds above which predictive intervals are of the survivors
WORDS = words_of("report")["printed"]
COLOURS = {"inside": BLUE, "outside": ORANGE, "without an interval": GREY}


class Predictive(NamedTuple):
    """95 % predictive intervals of a sample of given size."""

    mean: tuple[float, float]  # of its mean
    std: tuple[float, float]  # of its standard deviation, with n − 1


def predictive_intervals(values: np.ndarray, size: int) -> Predictive:
    """95 % predictive intervals of the mean and standard deviation of further values, by nested bootstrap.

    Of `DRAWS` populations, each n of the values drawn with replacement, one sample each is drawn with
    replacement. So the intervals contain the variance of a sample of this size and the uncertainty of the n
    values. Each of the two levels of resampling shrinks the variance by (n − 1) / n; residuals are scaled
    by n / (n − 1) to compensate for both. The same values give the same intervals.

    Measured coverage for size = 10, of means and of standard deviations: with n = 50, 0.95 and 0.93 for a
    normal distribution, 0.94 and 0.90 for a gamma distribution of shape 2; with n = 10, 0.92 and 0.86, and
    0.91 and 0.80.

    Args:
        values: finite, shape (n,), at least two.
        size: of the sample, at least two.
    """
    n, centre = len(values), values.mean()
    scaled = centre + (values - centre) * n / (n - 1)
    samples = scaled[_resampled(n, size)]
    return Predictive(_ends(samples.mean(1)), _ends(samples.std(1, ddof=1)))


def predictive_pooled_std(series: np.ndarray, size: int) -> tuple[float, float]:
    """95 % predictive interval of the standard deviation of further series, their values pooled.

    By the nested bootstrap of `predictive_intervals` over series, without its scaling of residuals.

    Args:
        series: finite, shape (n, T), n at least two.
        size: number of series that are pooled.
    """
    rows = _resampled(len(series), size)
    # About the overall mean, so that the difference of the moments is exact enough.
    centred = series - series.mean()
    first, second = centred.mean(1)[rows].mean(1), (centred**2).mean(1)[rows].mean(1)
    return _ends(np.sqrt(np.maximum(second - first**2, 0.0)))


def _ends(samples: np.ndarray) -> tuple[float, float]:
    """Ends of the middle 95 %."""
    low, high = np.quantile(samples, QUANTILES).tolist()
    return low, high


@functools.cache
def _resampled(n: int, size: int) -> np.ndarray:
    """Indices of samples from resampled populations of n values, shape (DRAWS, size)."""
    generator = np.random.default_rng(0)
    populations = generator.integers(n, size=(DRAWS, n))
    return np.take_along_axis(populations, generator.integers(n, size=(DRAWS, size)), axis=1)


def printed_items(planned: Sequence[Planned], key: str, **shown: str) -> list[Item]:
    """A figure, a table of means and one of standard deviations, a row per run that has printed values.

    A printed value is inside or outside the 95 % predictive interval of as many seeds as it is of, drawn
    from ours. Runs of fewer seeds are left out.

    Args:
        planned: runs, finished or missing, of one initial policy and protocol.
        key: what the keys begin with, initial policy and protocol.
        shown: setting and section.
    """
    means, _ = tables = [_table(planned, key, statistic, **shown) for statistic in ("mean", "std")]
    figure = PageFigure(
        key=key,
        title=WORDS["figure"]["title"].format(**shown),
        note=WORDS["figure"]["note"],
        section=shown["section"],
        wide=True,
        draw=(lambda: draw_printed(means.records)) if means.shown else None,
        lacking=means.lacking,
    )
    return [figure, *tables]


def _table(planned: Sequence[Planned], key: str, statistic: str, **shown: str) -> PageTable:
    """The table of a statistic, `mean` or `std`."""
    rows, records = [], []
    for one in planned:
        run = one.run
        if run is None or len(run.seeds) < PAPER_SEEDS:
            continue
        gone, row = collapsed(run), (dataset_label(one.dataset), method_label(one.model))
        compared = [_compared(run, measure, gone, statistic) for measure in MEASURES]
        if any(compared):
            cells = [_cell(of) if of else "" for of in compared]
            rows.append(Row(*row, [f"{gone.sum()} of {len(gone)}", *cells]))
            records += [{"row": ", ".join(row)} | of for of in compared if of]
    columns = ["collapsed", *(measure.heading for measure in MEASURES)]
    words = {name: text.format(**WORDS, **shown) for name, text in WORDS[statistic].items()}
    words["key"] = key.replace("printed", f"printed_{statistic}")
    return table_of(columns, rows, records, planned, **words, **shown)


def collapsed(run: Result) -> pd.Series:
    """Whether each seed accepted no applicant at any step in the last half of the time steps."""
    rates = run.curve("acceptance_rate")
    return rates[rates.index > run.config.schedule.time_steps / 2].eq(0.0).all()


def _by_step(run: Result, measure: Quantity) -> pd.DataFrame:
    """What the printed standard deviation of a measure is taken over: a row per seed.

    Columns are the time steps of evaluation.window for a temporal measure: M_t for a mean, |M_t − μ_M| for a
    temporal variance. For an effective measure it is one column.
    """
    kind, _, column = measure.name.partition("_")
    if kind not in ("tv", "mean"):
        return run.values(measure.name).to_frame()
    first, last = run.config.evaluation.window
    curve = run.curve(column).loc[first:last].T
    return curve if kind == "mean" else curve.sub(curve.mean(axis=1), axis=0).abs()


def _compared(run: Result, measure: Quantity, gone: pd.Series, statistic: str) -> dict[str, Any]:
    """The comparison of a measure of a run; empty without a printed value, or one of ours.

    Args:
        run: with printed values or without.
        measure: of the whole run.
        gone: of `collapsed`.
        statistic: `mean` or `std`.
    """
    printed, values = printed_values(run, measure), run.values(measure.name)
    # Rows are seeds: of one value, or of one per time step, whose deviation is over both.
    series = values.to_frame() if statistic == "mean" else _by_step(run, measure).loc[values.index]
    alive = series[~gone[values.index]]
    ours = _statistic(series, statistic)
    if printed is None or math.isnan(ours):
        return {}
    on_survivors = 1 - len(alive) / len(series) > MANY
    drawn_from = (alive if on_survivors else series).to_numpy()
    print_of, (low, high) = printed[statistic == "std"], (math.nan, math.nan)
    if known := len(drawn_from) >= PAPER_SEEDS:
        if drawn_from.shape[1] > 1:
            low, high = predictive_pooled_std(drawn_from, PAPER_SEEDS)
        else:
            low, high = getattr(predictive_intervals(drawn_from[:, 0], PAPER_SEEDS), statistic)
    spread = run.spread(measure.name) if statistic == "mean" else Spread(ours, None, None)
    return {
        "measure": measure.heading,
        "statistic": statistic,
        **difference_of(spread, "ours"),
        "of_survivors": _statistic(alive, statistic),
        "on_survivors": on_survivors,
        "printed": print_of,
        "predictive_low": low,
        "predictive_high": high,
        "inside": is_inside(print_of, low, high) if known else None,
    }


def _statistic(series: pd.DataFrame, statistic: str) -> float:
    """Mean or standard deviation of series, a row per seed; NaN of too few values."""
    values = series.stack()
    # One value per seed has a standard deviation from two seeds on.
    return float(values.mean() if statistic == "mean" else values.std(ddof=int(series.shape[1] == 1)))


def is_inside(printed: float, low: float, high: float) -> bool:
    """Whether a printed value, which is rounded, is inside a predictive interval."""
    return low - HALF_DIGIT <= printed <= high + HALF_DIGIT


def _cell(of: dict[str, Any]) -> Cell:
    """A comparison as shown."""
    ours, beside = mean_interval(Spread(of["ours"], None, (of["low"], of["high"]))), number(of["printed"])
    if of["on_survivors"]:
        ours = ", ".join(filter(None, [ours, number(of["of_survivors"])]))
    if of["inside"] is not None:
        where = "inside" if of["inside"] else "outside"
        beside += f", {where} {number(of['predictive_low'])} to {number(of['predictive_high'])}"
    return Cell(ours, beside, marks="†" * of["on_survivors"])


def draw_printed(records: pd.DataFrame) -> Figure:
    """Draw printed means, inside or outside the predictive intervals of ours: a panel per measure.

    Args:
        records: of the table of means of `printed_items`.
    """
    names = [*records["row"].unique()]
    panels: dict[str, list[Point]] = {}
    for one in records.to_dict("records"):
        row, ends = names.index(one["row"]), (one["predictive_low"], one["predictive_high"])
        word = {True: "inside", False: "outside"}.get(one["inside"], "without an interval")
        bar = {"color": GREY, "label": "our 95 % predictive interval"}
        dot = {"color": COLOURS[word], "label": f"printed mean, {word}", "marker": "o", "ms": 4}
        panels.setdefault(f"{one['measure']} (×100)", []).extend(
            [(row, Spread(sum(ends) / 2, None, ends), bar), (row, one["printed"], dot)]
        )
    figure, grid = draw_rows(names, panels, min(3, len(panels)))
    legend_below(figure, handles_of(grid.flat), 3)
    return figure
