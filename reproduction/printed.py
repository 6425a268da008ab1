"""Printed means and standard deviations beside those that as many seeds of ours would give."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from functools import partial
from typing import Any

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
    Row,
    handles_of,
    legend_below,
    mean_interval,
    number,
)
from fairall.metrics import Quantity, Spread
from fairall.report import dataset_label, method_label
from reproduction.figures import Point, draw_rows
from reproduction.items import difference_of, figure_of, table_of
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


def predictive_interval(series: np.ndarray, size: int, statistic: str) -> tuple[float, float]:
    """95 % predictive interval of the mean or standard deviation of further values, by nested bootstrap.

    Of `DRAWS` populations, each n of the series drawn with replacement, one sample each is drawn with
    replacement. So the interval contains the variance of a sample of this size and the uncertainty of the n
    series. Each of the two levels of resampling shrinks the variance by (n − 1) / n; residuals of series of
    one value are scaled by n / (n − 1) to compensate for both. The same values give the same interval.

    Measured coverage for size = 10, of means and of standard deviations: with n = 50, 0.95 and 0.93 for a
    normal distribution, 0.94 and 0.90 for a gamma distribution of shape 2; with n = 10, 0.92 and 0.86, and
    0.91 and 0.80.

    Args:
        series: finite, shape (n, T), n at least two. Of several values each, the deviation is of all pooled.
        size: number of series in a sample, at least two.
        statistic: `mean` or `std`.
    """
    n, centre = len(series), series.mean()
    rows, centred = _resampled(n, size), series - centre
    if series.shape[1] > 1:
        first, second = centred.mean(1)[rows].mean(1), (centred**2).mean(1)[rows].mean(1)
        samples = np.sqrt(np.maximum(second - first**2, 0.0))
    else:
        values = (centre + centred[:, 0] * n / (n - 1))[rows]
        samples = values.mean(1) if statistic == "mean" else values.std(1, ddof=1)
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
    tables = []
    for statistic in ("mean", "std"):
        rows, records = [], []
        for one in planned:
            if one.run is None or len(one.run.seeds) < PAPER_SEEDS:
                continue
            gone, row = collapsed(one.run), (dataset_label(one.dataset), method_label(one.model))
            found = [_compared(one.run, measure, gone, statistic) for measure in MEASURES]
            if any(found):
                cells = [_cell(of) if of else "" for of in found]
                rows.append(Row(*row, [f"{gone.sum()} of {len(gone)}", *cells]))
                records += [{"row": ", ".join(row)} | of for of in found if of]
        columns = ["collapsed", *(measure.heading for measure in MEASURES)]
        texts = {name: text.format(**WORDS, **shown) for name, text in WORDS[statistic].items()}
        texts["key"] = key.replace("printed", f"printed_{statistic}")
        tables.append(table_of(columns, rows, records, planned, **texts, **shown))
    means = tables[0]
    figure = figure_of(
        key,
        WORDS["figure"]["title"].format(**shown),
        WORDS["figure"]["note"],
        partial(draw_printed, means.records),
        planned,
        drawn=means.shown,
        section=shown["section"],
        wide=True,
    )
    return [figure, *tables]


def collapsed(run: Result) -> pd.Series:
    """Whether each seed accepted no applicant at any step in the last half of the time steps."""
    rates = run.curve("acceptance_rate")
    return rates[rates.index > run.config.schedule.time_steps / 2].eq(0.0).all()


def _compared(run: Result, measure: Quantity, gone: pd.Series, statistic: str) -> dict[str, Any]:
    """The comparison of a measure of a run; empty without a printed value, or one of ours.

    Args:
        run: with printed values or without.
        measure: of the whole run.
        gone: of `collapsed`.
        statistic: `mean` or `std`.
    """
    printed, values = printed_values(run, measure), run.values(measure.name)
    # A row per seed; the printed deviation of a temporal measure is over time steps too: of M_t for a mean,
    # of |M_t − μ_M| for a temporal variance.
    series, (kind, _, column) = values.to_frame(), measure.name.partition("_")
    if statistic == "std" and kind in ("tv", "mean"):
        first, last = run.config.evaluation.window
        series = run.curve(column).loc[first:last].T.loc[values.index]
        if kind == "tv":
            series = series.sub(series.mean(axis=1), axis=0).abs()
    alive = series[~gone[values.index]]
    ours = _statistic(series, statistic)
    if printed is None or math.isnan(ours):
        return {}
    on_survivors = 1 - len(alive) / len(series) > MANY
    drawn_from, low, high = (alive if on_survivors else series).to_numpy(), math.nan, math.nan
    if known := len(drawn_from) >= PAPER_SEEDS:
        low, high = predictive_interval(drawn_from, PAPER_SEEDS, statistic)
    print_of = printed[statistic == "std"]
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
        # Printed values are rounded.
        "inside": low - HALF_DIGIT <= print_of <= high + HALF_DIGIT if known else None,
    }


def _statistic(series: pd.DataFrame, statistic: str) -> float:
    """Mean or standard deviation of series, a row per seed; NaN of too few values."""
    values = series.stack()
    # One value per seed has a standard deviation from two seeds on.
    return float(values.mean() if statistic == "mean" else values.std(ddof=int(series.shape[1] == 1)))


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
    names, panels = [*records["row"].unique()], dict[str, list[Point]]()
    for one in records.to_dict("records"):
        row, ends = names.index(one["row"]), (one["predictive_low"], one["predictive_high"])
        word = {True: "inside", False: "outside"}.get(one["inside"], "without an interval")
        bar = {"color": GREY, "label": "our 95 % predictive interval"}
        dot = {"color": COLOURS[word], "label": f"printed mean, {word}", "marker": "o", "ms": 4}
        points = panels.setdefault(f"{one['measure']} (×100)", [])
        points += [(row, Spread(sum(ends) / 2, None, ends), bar), (row, one["printed"], dot)]
    figure = draw_rows(names, panels, min(3, len(panels)))
    legend_below(figure, handles_of(figure.axes), 3)
    return figure
