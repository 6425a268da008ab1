"""Printed means and standard deviations beside those that as many seeds of ours would give."""

from __future__ import annotations

import functools
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
    Row,
    handles_of,
    legend_below,
    number,
)
from fairall.metrics import Quantity, Spread
from fairall.report import dataset_label, measures, method_label
from fairall.results import paper_metrics
from reproduction.items import grid_of, table_of
from reproduction.paper import HALF_DIGIT, PAPER_SEEDS
from reproduction.plan import EFFECTIVE, TEMPORAL, Planned, interpretable
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
    low, high = np.quantile([samples.mean(1), samples.std(1, ddof=1)], QUANTILES, axis=1).tolist()
    return Predictive((low[0], high[0]), (low[1], high[1]))


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
    low, high = np.quantile(np.sqrt(np.maximum(second - first**2, 0.0)), QUANTILES).tolist()
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
    from ours. Runs of fewer seeds are left out, and all whose numbers may not be interpreted.

    Args:
        planned: runs, finished or missing, of one initial policy and protocol.
        key: what the keys begin with, initial policy and protocol.
        shown: setting and section.
    """
    if not all(interpretable(one.config.preset) for one in planned):
        return []
    tables = []
    enough = [(one, one.run) for one in planned if one.run and len(one.run.seeds) >= PAPER_SEEDS]
    for statistic in ("mean", "std"):
        rows, records = [], []
        for one, run in enough:
            gone = collapsed(run)
            compared = [_compared(run, measure, gone, statistic) for measure in MEASURES]
            if not any(compared):
                continue
            cells = [Cell() if value is None else _cell(value) for value in compared]
            share = Cell("" if gone is None else f"{gone.sum()} of {len(gone)}")
            rows.append(Row(dataset_label(one.dataset), method_label(one.model), [share, *cells]))
            who = {"dataset": one.dataset, "model": one.model, "run": run.identity}
            records += [who | value | {"command": one.command} for value in compared if value]
        columns = ["collapsed", *(measure.heading for measure in MEASURES)]
        words = {name: text.format(**shown) for name, text in WORDS[statistic].items()} | shown
        words["key"] = key.replace("printed", f"printed_{statistic}")
        tables.append(table_of(columns, rows, records, planned, **words))
    means = tables[0].records
    figure = PageFigure(
        key=key,
        title=WORDS["figure"]["title"].format(**shown),
        note=WORDS["figure"]["note"],
        section=shown["section"],
        wide=True,
        draw=(lambda: draw_printed(means)) if len(means) else None,
        lacking=tables[0].lacking,
    )
    return [figure, *tables]


def collapsed(run: Result) -> pd.Series | None:
    """Whether each seed accepted no applicant at any step in the last half of the time steps.

    Returns:
        Booleans by seed; None for runs of versions that did not record acceptance rates.
    """
    rates = run.curve("acceptance_rate")
    if rates.empty:
        return None
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


def _compared(
    run: Result, measure: Quantity, gone: pd.Series | None, statistic: str
) -> dict[str, Any] | None:
    """The comparison of a measure of a run; None without a printed value, or one of ours.

    Args:
        run: with printed values or without.
        measure: of the whole run.
        gone: of `collapsed`.
        statistic: `mean` or `std`.
    """
    printed = paper_metrics(run.config).get(measure.name.removesuffix("_sampled"))
    values = run.values(measure.name)
    # Rows are seeds: of one value, or of one per time step, whose deviation is over both.
    series = values.to_frame() if statistic == "mean" else _by_step(run, measure).loc[values.index]
    alive = values.index if gone is None else values.index[~gone[values.index]]
    ours, of_survivors = _statistic(series, statistic), _statistic(series.loc[alive], statistic)
    if printed is None or ours is None:
        return None
    share = None if gone is None else 1 - len(alive) / len(values)
    on_survivors = share is not None and share > MANY
    drawn_from = (series.loc[alive] if on_survivors else series).to_numpy()
    low, high, inside = None, None, None
    if len(drawn_from) >= PAPER_SEEDS:
        if drawn_from.shape[1] > 1:
            low, high = predictive_pooled_std(drawn_from, PAPER_SEEDS)
        else:
            low, high = getattr(predictive_intervals(drawn_from[:, 0], PAPER_SEEDS), statistic)
        inside = is_inside(printed[statistic == "std"], low, high)
    spread = Spread.over_seeds(values.to_numpy(), bounds=measure.bounds) if statistic == "mean" else None
    ends = spread.interval if spread and spread.interval else (None, None)
    return {
        "measure": measure.name,
        "statistic": statistic,
        "seeds": len(values),
        "collapsed": share,
        "ours": ours,
        "interval_low": ends[0],
        "interval_high": ends[1],
        "of_survivors": None if gone is None else of_survivors,
        "printed": printed[statistic == "std"],
        "on_survivors": on_survivors,
        "predictive_low": low,
        "predictive_high": high,
        "inside": inside,
    }


def _statistic(series: pd.DataFrame, statistic: str) -> float | None:
    """Mean or standard deviation of series, a row per seed; None of too few values."""
    some = series.to_numpy()
    # One value per seed has a standard deviation from two seeds on.
    if some.size <= (statistic == "std"):
        return None
    return float(some.mean() if statistic == "mean" else some.std(ddof=some.shape[1] == 1))


def is_inside(printed: float, low: float, high: float) -> bool:
    """Whether a printed value, which is rounded, is inside a predictive interval."""
    return low - HALF_DIGIT <= printed <= high + HALF_DIGIT


def _cell(of: dict[str, Any]) -> Cell:
    """A comparison as shown."""
    ours, beside = number(of["ours"]), number(of["printed"])
    if of["interval_low"] is not None:
        ours += f" [{number(of['interval_low'])}, {number(of['interval_high'])}]"
    if of["on_survivors"] and of["of_survivors"] is not None:
        ours += f", {number(of['of_survivors'])}"
    if of["inside"] is not None:
        where = "inside" if of["inside"] else "outside"
        beside += f", {where} {number(of['predictive_low'])} to {number(of['predictive_high'])}"
    marks = "†" if of["on_survivors"] else ""
    return Cell(ours, beside, marks=marks)


def draw_printed(records: pd.DataFrame) -> Figure:
    """Draw printed means, inside or outside the predictive intervals of ours: a panel per measure.

    Args:
        records: of the table of means of `printed_items`.
    """
    records = records.assign(row=[*zip(records["dataset"], records["model"], strict=True)])
    rows, names = [*records["row"].unique()][::-1], records["measure"].unique()
    columns = min(3, len(names))
    lines = -(-len(names) // columns)
    height = lines * (0.155 * len(rows) + 0.55)
    figure, panels = grid_of(lines, columns, height, width=7.2, sharey=True)
    words = {True: "inside", False: "outside", None: "without an interval"}
    look: dict[str, Any] = {"color": GREY, "lw": 4, "alpha": 0.45, "solid_capstyle": "butt"}
    for axes, name in zip(panels.flat, names, strict=False):
        of = records[records["measure"] == name]
        for row, printed, low, high, inside in zip(
            *(of[key] for key in ("row", "printed", "predictive_low", "predictive_high", "inside")),
            strict=True,
        ):
            place, word = rows.index(row), words[inside]
            if inside is not None:
                ends = [100 * low, 100 * high]
                axes.plot(ends, [place] * 2, label="our 95 % predictive interval", **look)
            label = f"printed mean, {word}"
            axes.plot(100 * printed, place, "o", color=COLOURS[word], ms=4, label=label, zorder=3)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x", lw=0.3, alpha=0.5)
        axes.set_axisbelow(True)
        (measure,) = measures(name.removesuffix("_sampled"))
        axes.set_title(f"{measure.heading} (×100)")
    for axes in panels[:, 0]:
        axes.set_yticks(range(len(rows)), [f"{dataset_label(d)}, {method_label(m)}" for d, m in rows])
        axes.set_ylim(-0.7, len(rows) - 0.3)
    legend_below(figure, handles_of(panels.ravel()), 3)
    return figure
