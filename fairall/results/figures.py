"""Figures of one run, drawn from data frames and arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall.data.people import People
from fairall.display.style import (
    BLUE,
    GREY,
    ORANGE,
    STYLE,
    handles_of,
    legend_below,
    save_figure,
    set_title,
)
from fairall.metrics import UNBOUNDED, Quantity, Spread
from fairall.models.learner import PretrainCurves
from fairall.results.paper import REFERENCES

MOST_COLUMNS = 3  # panels of a run's figure side by side
# Of people in the figure of a latent.
COLOURS = {"S = −1": ORANGE, "S = +1": BLUE, "ỹ = 0": ORANGE, "ỹ = 1": BLUE, "ỹ unknown": GREY}
# How the levels of the reference policies are drawn.
LEVELS: dict[str, Any] = {
    "accept_all": ":",
    "reject_all": "-",
    "oracle": (0, (6, 2)),
    "oracle_fair": (0, (5, 1, 1, 1)),
}


def band(
    axes: Axes,
    curve: pd.DataFrame,
    *,
    bounds: tuple[float, float] = UNBOUNDED,
    label: str | None = None,
    **look: Any,
) -> None:
    """Draw the mean of a curve over seeds ×100, and a band of one standard deviation.

    Args:
        axes: to draw on.
        curve: of `Result.curve`, a row per time step and a column per seed.
        bounds: of the measure; the band is cut there.
        label: of the mean.
        look: of the mean, with `color`.
    """
    mean, std = curve.mean(axis=1), curve.std(axis=1).fillna(0.0)
    axes.plot(mean.index, 100 * mean, label=label, **look)
    low, high = (100 * end.clip(*bounds) for end in (mean - std, mean + std))
    axes.fill_between(mean.index, low, high, color=look["color"], alpha=0.2, lw=0)


def interval(axes: Axes, x: Spread | float, y: Spread | float, **look: Any) -> Any:
    """Draw a point ×100 with the 95 % intervals of its coordinates; a number has none.

    Returns:
        What a legend can show.
    """
    points = [value if isinstance(value, Spread) else Spread(value, None, None) for value in (x, y)]
    x_mean, y_mean = (100 * point.mean for point in points)
    x_error, y_error = (
        point.interval and [[100 * abs(end - point.mean)] for end in point.interval] for point in points
    )
    return axes.errorbar(x_mean, y_mean, y_error, x_error, ls="none", elinewidth=0.9, **look)


def level(axes: Axes, policy: str, measure: Quantity, height: float) -> None:
    """Draw the mean ×100 of a policy of `LEVELS` as a horizontal line, where it has one that says something.

    Accepting everybody or nobody has a level in panels of utilities only: it is fair by most definitions.
    """
    better, constant = measure.higher_is_better, policy in ("accept_all", "reject_all")
    if np.isfinite(height) and better is not None and (better or not constant):
        axes.axhline(100 * height, color=GREY, ls=LEVELS[policy], lw=0.8, label=REFERENCES[policy])


def principal(z: np.ndarray) -> tuple[np.ndarray, float]:
    """Points on their two leading principal axes, shape (N, 2), and the share of variance they show."""
    centred = z - z.mean(0)
    _, singular, axes = np.linalg.svd(centred, full_matrices=False)
    points = np.pad(centred @ axes[:2].T, ((0, 0), (0, max(0, 2 - len(axes)))))
    return points, (singular[:2] ** 2).sum() / (singular**2).sum()


@contextmanager
def saved(path: Path, size: tuple[float, float], title: str) -> Iterator[Figure]:
    """A figure that is written as PNG when the block ends, with a title and a size in inches."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        set_title(figure, title)
        save_figure(figure, path)


def draw_curve(steps: pd.DataFrame, measure: Quantity, axes: Axes, levels: pd.DataFrame) -> None:
    """Draw a measure of the policy over time: mean and one standard deviation over seeds.

    Args:
        steps: `Result.steps`.
        measure: a column of it.
        axes: to draw on.
        levels: `Result.summary()`, whose temporal means of the references and of the paper are drawn.
    """
    curve = steps.pivot(index="time_step", columns="seed", values=measure.name)
    band(axes, curve, bounds=measure.bounds, color=BLUE)
    heights = levels.reindex([measure.mean().name]).iloc[0]
    for policy in REFERENCES:
        level(axes, policy, measure, heights[policy])
    if np.isfinite(heights["paper_mean"]):
        axes.axhline(
            100 * heights["paper_mean"], color="black", ls="--", lw=0.8, label="printed in the paper"
        )
    axes.set(title=f"{measure.heading} ×100", xlim=(0, curve.index[-1]), xlabel="time step t")
    axes.locator_params(nbins=4)  # a quarter less time to draw than with the usual nine


def draw_learning(
    steps: pd.DataFrame, measures: Sequence[Quantity], levels: pd.DataFrame, path: Path, *, title: str
) -> None:
    """Draw the curve of each measure of the policy that has values.

    Args:
        steps: `Result.steps`.
        measures: columns of it.
        levels: `Result.summary()`.
        path: PNG to write.
        title: of the figure.
    """
    of_policy = [measure for measure in measures if measure.of == "policy"]
    # All seeds may have diverged before the first step.
    shown = [measure for measure in of_policy if steps[measure.name].notna().any()] or of_policy[:2]
    rows, columns = math.ceil(len(shown) / MOST_COLUMNS), min(len(shown), MOST_COLUMNS)
    with saved(path, (3.2 * columns, 2.4 * rows + 0.4), title) as figure:
        for k, measure in enumerate(shown, start=1):
            draw_curve(steps, measure, figure.add_subplot(rows, columns, k), levels)
        label = f"mean of {steps['seed'].nunique()} seeds, ± 1 standard deviation"
        legend_below(figure, {label: figure.axes[0].lines[0]} | handles_of(figure.axes), 3)


def draw_phase1(curves: PretrainCurves, path: Path, *, title: str) -> None:
    """Draw training and validation loss of Phase I for each seed, and the epochs whose weights were kept."""
    with saved(path, (5, 3.5), title) as figure:
        axes = figure.subplots()
        for values, colour, label in (
            (curves.train, GREY, "training, a line per seed"),
            (curves.validation, BLUE, "validation, a line per seed"),
        ):
            axes.plot(curves.epochs, values, color=colour, lw=0.8, label=label)
        label = "kept: best validation epoch"
        axes.scatter(curves.best_epoch, curves.kept_loss, color=ORANGE, s=18, zorder=3, label=label)
        # Without the early epochs, whose losses are far larger.
        axes.set_ylim(top=float(np.quantile(curves.validation.numpy(), 0.98)))
        axes.set(xlabel="Phase I epoch", ylabel="negative ELBO, β-weighted (nats)")
        legend_below(figure, handles_of([axes]), 2)


def draw_latent(z: np.ndarray, people: People, path: Path, *, title: str) -> None:
    """Draw latent means of one seed on their two leading principal axes, coloured by s and by the label.

    Args:
        z: E[z | x, s], shape (N, Z).
        people: the N people.
        path: PNG to write.
        title: of the figure.
    """
    points, share = principal(z)
    names = pd.DataFrame(
        {"s": np.where(people.s > 0, "S = +1", "S = −1"), "ỹ": [f"ỹ = {value:g}" for value in people.label]}
    )
    names.loc[~people.labelled.numpy(), "ỹ"] = "ỹ unknown"
    with saved(path, (8, 3.6), f"{title}; {100 * share:.0f} % of the latent means' variance shown") as figure:
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        for axes, column in zip(panels, names, strict=True):
            for name, rows in names.groupby(column):
                axes.scatter(*points[rows.index].T, s=9, color=COLOURS[name], alpha=0.7, lw=0, label=name)
            axes.set(xlabel="first principal axis of z", ylabel="second principal axis")
            axes.legend()
