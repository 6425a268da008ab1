"""The page docs/findings.md: its text and figures from the tables of results in docs/.

The text is `findings.md.jinja`, whose numbers are cells of these tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall import places
from fairall.display import (
    GREY,
    PageFigure,
    handles_of,
    legend_below,
    mean_interval,
    rendered,
    write,
)
from fairall.metrics import Spread
from reproduction.items import grid_of
from reproduction.pages import publish, read_table, refuse
from reproduction.plan import ABLATION, grid
from reproduction.words import words_of

NUMBER = r"(−?\d+(?:\.\d+)?)"
# What cells of tables of results hold.
MEAN = re.compile(NUMBER)
SPREAD = re.compile(rf"{NUMBER} (?:\(|± ){NUMBER}")  # mean and standard deviation
LEVEL = re.compile(rf"{NUMBER}(?: (?:\(|± ){NUMBER})?")  # the same, or a mean alone
INTERVAL = re.compile(rf"{NUMBER} \[{NUMBER}, {NUMBER}\]")  # mean and 95 % interval
PRINTED = re.compile(rf"\({NUMBER}, (?:in|out)side {NUMBER} to {NUMBER}\)")  # with our predictive interval
COVERAGE = re.compile(rf"{NUMBER} %")
ENDS = {"interval": INTERVAL, "deviation": LEVEL, "printed": PRINTED, "share": COVERAGE}  # of what is drawn

WIDTH = 6.8  # inches
GROUP = "harsh initial policy"
EVERY = "all data sets"
MEMORIES = ("step", "all")
TEST = "test utility ↑"


def cell(key: str, group: str, name: str, column: str) -> str:
    """Text of a cell of a table of results."""
    return str(read_table(key).loc[(group, name), column])


def numbers(pattern: re.Pattern[str], key: str, column: str) -> pd.DataFrame:
    """The numbers of a column's cells by group and name; NaN where a cell is not of the pattern."""
    found = read_table(key)[column].str.extract(pattern)
    return found.replace("−", "-", regex=True).astype(float)


def findings(overrides: Sequence[str], folder: Path | None = None, into: Sequence[Path] = ()) -> None:
    """Write the text of a page and its figures from the tables of results in docs/.

    Args:
        overrides: `outputs_dir=`, of the figures' page.
        folder: of the figures' page; None: `findings` in outputs_dir.
        into: pages that get the text and the figures, docs/findings.md.

    Raises:
        FairAllError: where a table of results or a page is missing.
    """
    config = places(overrides)
    refuse(into, config)
    for page in into:
        write(page, text())
    publish("findings", "FairAll: findings", {"": FIGURES}, config, folder=folder, into=into)


def text() -> str:
    """The page in Markdown, with empty blocks of its figures."""

    def part(pattern: re.Pattern[str], number: int = 0) -> Callable[..., str]:
        return lambda *place: next(pattern.finditer(cell(*place)))[number]

    shown: dict[str, object] = {"mean": part(MEAN), "deviation": part(SPREAD, 2), "interval": part(INTERVAL)}
    shown |= {"share": part(COVERAGE), "cell": cell, "test_utility": TEST, "test_dpu": "mean DPU ↓"}
    functions = inside, reproduced, effects, like_with_like, over_data_sets, rarely, below_everybody
    shown |= {function.__name__: function for function in functions}
    return rendered("findings.md.jinja", shown, "reproduction")


def inside() -> str:
    """How many printed means are inside our predictive intervals with the switches of the authors' code."""
    keys = ("printed_mean_harsh_published_code", "printed_mean_lenient_published_code")
    found = _cells(keys).str.extract("(inside|outside)")[0].dropna()
    return f"{(found == 'inside').sum()} of the {len(found)}"


def _cells(keys: Iterable[str]) -> pd.Series:
    """All cells of some tables, by group, name and heading."""
    return pd.concat([read_table(key).stack() for key in keys])


def reproduced(policy: str, splits: bool = True, kinds: Sequence[bool] = (False, True)) -> str:
    """How many claims of the paper are reproduced after an initial policy, such as `24 of 27`.

    Args:
        policy: the initial one.
        splits: a split of the data for each seed; False: one split.
        kinds: of claims that count: False that a method is better, True that it is no worse.
    """
    keys = ("claims_splits_real", "claims_splits_synthetic") if splits else ("claims", "claims_synthetic")
    cells = _cells(f"{key}_{policy}" for key in keys)
    no_worse = cells.index.get_level_values("name").str.contains("no less|no greater")
    counted = cells[pd.Index(no_worse).isin(kinds)]
    return f"{counted.str.startswith('reproduced').sum()} of {len(counted)}"


def effects(effect: str, column: str) -> pd.Series:
    """Mean differences ×100 of an effect of the ablation by data set."""
    return numbers(INTERVAL, "ablation", column)[0].loc[effect].drop(EVERY)


def like_with_like(level: str, reference: str, column: str) -> pd.Series:
    """Mean difference ×100 between two levels of fairness by data set, others the same.

    It is of the VAE with cut decisions, averaged over both memories: the cells of the ablation that have
    every level. Effects such as `latent − none` are of further cells, which differ between levels.
    """
    names = grid(ABLATION[0]).dataset.split(",")
    means = pd.DataFrame({name: numbers(INTERVAL, f"ablation_{name}", column)[0].loc[""] for name in names})
    one, other = (
        means.loc[[f"VAE, {of}, cut, {memory}" for memory in MEMORIES]].mean() for of in (level, reference)
    )
    return one - other


def over_data_sets(differences: pd.Series, without: str = "") -> str:
    """Mean of differences ×100 by data set, with Student's 95 % interval for other data sets."""
    kept = differences.drop(without, errors="ignore")
    return mean_interval(Spread.over_seeds(kept.to_numpy()), scale=1)


def below_everybody() -> str:
    """Of how many methods on German Credit the test utility is less than that of accepting everybody."""
    means = numbers(MEAN, "leaderboard_credit", TEST)[0].loc[GROUP]
    methods = read_table("leaderboard_credit").loc[GROUP, "CPU seconds"] != ""
    return f"{(means[methods] < means['accept everybody']).sum()} of {methods.sum()}"


def rarely() -> str:
    """Of how many kinds of estimate from the accepted alone the interval covers the truth in less than 90 %.

    A kind is a measure of a score for a way of selection, in logs of 10,000 rows. Of those that are counted
    the coverage is less with 10,000 rows than with 1,000.
    """
    few, many = (
        numbers(COVERAGE, "scores", f"{rows} rows")[0].filter(like="accepted alone")
        for rows in ("1,000", "10,000")
    )
    return f"{((many < 90) & (many < few)).sum()} of {many.count()}"


def draw(grid: Sequence[Any], panels: Sequence[Mapping[str, Any]], legend: int = 0, **shared: bool) -> Figure:
    """A figure of `findings.yaml`.

    Args:
        grid: rows, columns and inches of its height.
        panels: `means`, each with the arguments of `draw_means`, and `axes`, titles and labels.
        legend: its columns.
        shared: axes of all panels.
    """
    figure, axes_of = grid_of(*grid, width=WIDTH, **shared)
    for axes, panel in zip(axes_of.ravel(), panels, strict=True):
        for means in panel["means"]:
            draw_means(axes, **means)
        axes.set(**panel["axes"])
    if legend:
        legend_below(figure, handles_of(figure.axes), legend)
    return figure


def draw_means(
    axes: Axes,
    table: str,
    column: str,
    of: Mapping[str, str],
    ends: str = "interval",
    rows: Mapping[str, str] | None = None,
    line: Any = None,
    start: float = 0,
    **look: Any,
) -> None:
    """Draw means of a column of a table of docs/ with their ends, the first row on top.

    Args:
        axes: to draw on.
        table: its key.
        column: its heading.
        of: the `group` or `name` of the rows, whose other word is beside them.
        ends: of `ENDS`: an interval, one deviation, the interval for a printed mean, or none.
        rows: names to draw in place of theirs, in this order.
        line: name of the row that a vertical line marks, or a value.
        start: where the first row is drawn.
        look: of the means, as matplotlib's `color` and `label`.
    """
    found = numbers(ENDS[ends], table, column).reindex(columns=range(3))
    if ends == "deviation":
        found[1], found[2] = found[0] - found[1], found[0] + found[1]
    for level, word in of.items():
        found = found.xs(word, level=level)
    found = found.reindex(rows).rename(rows) if rows else found
    at = start + np.arange(len(found))
    axes.plot(found[0], at, "o", ms=3, **look)
    axes.hlines(at, found[1], found[2], lw=1, color=look.get("color"))
    if line is not None:
        axes.axvline(found[0][line] if isinstance(line, str) else line, color=GREY, lw=0.6)
    axes.set_yticks(range(len(found)), found.index if of else map(", ".join, found.index))
    axes.set_ylim(len(found) - 0.5, -0.5)


FIGURES = tuple(
    PageFigure(key=f"findings_{key}", title=title, note=note, wide=True, draw=partial(draw, **drawn))
    for key, (title, note, drawn) in words_of("findings").items()
)
