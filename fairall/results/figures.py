"""Figures of one run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
    mean, std = 100 * curve.mean(axis=1), 100 * curve.std(axis=1).fillna(0.0)
    axes.plot(mean.index, mean, label=label, **look)
    low, high = (mean - std).clip(lower=100 * bounds[0]), (mean + std).clip(upper=100 * bounds[1])
    axes.fill_between(mean.index, low, high, color=look["color"], alpha=0.2, lw=0)


def interval(axes: Axes, x: Spread | float, y: Spread | float, **look: Any) -> Any:
    """Draw a point ×100 with the 95 % intervals of its coordinates; a number has none.

    Returns:
        What a legend can show.
    """
    ends: dict[str, Any] = {"ls": "none", "elinewidth": 0.9} | look
    place = []
    for name, value in (("xerr", x), ("yerr", y)):
        if isinstance(value, Spread):
            low, high = value.interval or (value.mean, value.mean)
            ends[name] = [[100 * (value.mean - low)], [100 * (high - value.mean)]]
            value = value.mean
        place.append(100 * value)
    return axes.errorbar(place[0], place[1], **ends)


def level(axes: Axes, policy: str, height: float) -> None:
    """Draw the level ×100 of a policy of `REFERENCES` as a horizontal line."""
    axes.axhline(100 * height, color=GREY, ls=LEVELS[policy], lw=0.8, label=REFERENCES[policy])


def has_level(policy: str, measure: Quantity) -> bool:
    """Whether a panel of a measure shows the level of a policy of `REFERENCES`.

    Accepting everybody or nobody has a level in panels of utilities only: it is fair by most definitions.
    """
    constant = policy in ("accept_all", "reject_all")
    return bool(measure.higher_is_better) or (measure.higher_is_better is False and not constant)


def principal(z: np.ndarray) -> tuple[np.ndarray, float]:
    """Points on their two leading principal axes, shape (N, 2), and the share of variance they show."""
    centred = z - z.mean(0)
    _, singular, axes = np.linalg.svd(centred, full_matrices=False)
    points = centred @ axes[:2].T
    if points.shape[1] == 1:
        points = np.column_stack([points, np.zeros(len(points))])
    return points, (singular[:2] ** 2).sum() / (singular**2).sum()


def draw_learning(
    steps: pd.DataFrame, measures: Sequence[Quantity], rows: pd.DataFrame, path: Path, *, title: str
) -> None:
    """Draw each measure of the policy over time: mean, one standard deviation and range over seeds.

    Args:
        steps: as of `Result`.
        measures: as of `Result`; those without values have no panel.
        rows: of `Result.rows`.
        path: PNG to write.
        title: of the figure.
    """
    with mpl.rc_context(STYLE):
        of_policy = [one for one in measures if one.of == "policy"]
        # All seeds may have diverged before the first step.
        shown = [one for one in of_policy if steps[one.name].notna().any()] or of_policy[:2]
        number = len(shown)
        lines = math.ceil(number / MOST_COLUMNS)
        columns = math.ceil(number / lines)
        figure = Figure(figsize=(3.2 * columns, 2.4 * lines + 0.4), layout="constrained")
        panels = figure.subplots(lines, columns, squeeze=False, sharex=True).ravel()
        for axes in panels[number:]:
            axes.set_axis_off()
        for axes, measure in zip(panels, shown, strict=False):
            draw_curve(steps, measure, axes, rows)
        for axes in panels[: max(0, number - columns)]:
            axes.set_xlabel("")
        for axes in panels[max(0, number - columns) : number]:
            axes.tick_params(labelbottom=True)
        seeds = f"mean of {steps['seed'].nunique()} seeds, ± 1 standard deviation, range"
        line = mpl.lines.Line2D([], [], color=BLUE)
        legend_below(figure, {seeds: line} | handles_of(panels[:number]), 3)
        set_title(figure, title)
        save_figure(figure, path)


def draw_curve(steps: pd.DataFrame, measure: Quantity, axes: Axes, levels: pd.DataFrame) -> None:
    """Draw a measure of the policy over time; `steps` as of `Result`, `levels` of `Result.rows`."""
    curve = steps.pivot(index="time_step", columns="seed", values=measure.name)
    low, high = 100 * curve.min(axis=1), 100 * curve.max(axis=1)
    axes.fill_between(curve.index, low, high, color=BLUE, alpha=0.12, lw=0)
    band(axes, curve, bounds=measure.bounds, color=BLUE)
    mean = f"mean_{measure.name}"
    if mean in levels.index:
        heights = levels.loc[mean, [*REFERENCES]].dropna()
        for policy, height in heights.items():
            if has_level(str(policy), measure):
                level(axes, str(policy), height)
        if np.isfinite(printed := levels.loc[mean, "paper_mean"]):
            axes.axhline(100 * printed, color="black", ls="--", lw=0.8, label="printed in the paper")
    axes.set(title=f"{measure.heading} ×100", xlim=(0, curve.index[-1]), xlabel="time step t")
    axes.locator_params(nbins=4)  # a quarter less time to draw than with the usual nine


def draw_phase1(curves: PretrainCurves, path: Path, *, title: str) -> None:
    """Draw training and validation loss of Phase I for each seed, and the epochs whose weights were kept."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5, 3.5), layout="constrained")
        axes = figure.subplots()
        for values, colour, label in (
            (curves.train, GREY, "training"),
            (curves.validation, BLUE, "validation"),
        ):
            lines = axes.plot(curves.epochs, values, color=colour, lw=0.8)
            lines[0].set_label(f"{label}, a line per seed")
        axes.scatter(
            curves.best_epoch,
            curves.kept_loss,
            color=ORANGE,
            s=18,
            zorder=3,
            label="kept: best validation epoch",
        )
        # Without the early epochs, whose losses are far larger.
        low = float(min(curves.train.min(), curves.validation.min()))
        high = float(np.quantile(curves.validation.numpy(), 0.98))
        axes.set(xlabel="Phase I epoch", ylabel="negative ELBO, β-weighted (nats)")
        margin = 0.05 * (high - low) or 0.5  # one epoch may have one loss
        axes.set_ylim(low - margin, high + margin)
        legend_below(figure, handles_of([axes]), 2)
        set_title(figure, title)
        save_figure(figure, path)


def draw_latent(
    z: np.ndarray, s: np.ndarray, label: np.ndarray, labelled: np.ndarray, path: Path, *, title: str
) -> None:
    """Draw latent means of one seed on their two leading principal axes, coloured by s and by the label.

    Args:
        z: E[z | x, s], shape (N, Z).
        s: sensitive attribute in {−1, +1}, shape (N,).
        label: ỹ in {0, 1}, shape (N,).
        labelled: whether the label is known, shape (N,), bool.
        path: PNG to write.
        title: of the figure.
    """
    points, share = principal(z)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        colourings = {
            "by the sensitive attribute": {"S = −1": (s < 0, ORANGE), "S = +1": (s > 0, BLUE)},
            "by the proxy label": {
                "ỹ unknown": (~labelled, GREY),
                "ỹ = 0": (labelled & (label == 0), ORANGE),
                "ỹ = 1": (labelled & (label == 1), BLUE),
            },
        }
        panels = figure.subplots(1, 2, sharex=True, sharey=True)
        for axes, (meaning, kinds) in zip(panels, colourings.items(), strict=True):
            for name, (rows, colour) in kinds.items():
                if rows.any():
                    axes.scatter(*points[rows].T, s=9, color=colour, alpha=0.7, lw=0, label=name)
            axes.set(title=meaning, xlabel="first principal axis of z", ylabel="second principal axis")
            axes.legend()
        set_title(figure, f"{title}; {100 * share:.0f} % of the latent means' variance shown")
        save_figure(figure, path)
