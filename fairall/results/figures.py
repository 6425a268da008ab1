"""Figures of one run: measures over time, Phase I losses, latent space; colours and style of all figures."""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fairall.metrics import STANDARD, Measure, Quantity
from fairall.models.learner import PretrainCurves
from fairall.results.references import REFERENCES
from fairall.storage.files import atomic

# Palette of Okabe and Ito, safe for colour-blind readers.
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#7F7F7F"
PURPLE = "#CC79A7"
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "figure.dpi": 150,
    "savefig.dpi": "figure",
    # Without a fixed salt the files of two equal runs would differ.
    "svg.hashsalt": "fairall",
}
COLOURS = (BLUE, ORANGE, GREEN, PURPLE)
MOST_COLUMNS = 4  # of panels
REFERENCE_LINES = {"accept_all": ":", "reject_all": "-", "oracle": (0, (6, 2)), "oracle_fair": "-."}


def draw_learning(
    table: pd.DataFrame,
    path: Path,
    *,
    title: str,
    split: str,
    paper: dict[str, tuple[float, float]],
    references: Mapping[str, Mapping[str, Any]],
    measures: Sequence[Measure] = STANDARD,
) -> None:
    """Draw each measure of the policy over time: mean, one standard deviation and range over seeds.

    Args:
        table: of `summary.measure_table`.
        path: PNG to write.
        title: of the figure.
        split: `test` or `validation`, the people measured on.
        paper: of `paper.paper_metrics`.
        references: of `summary.references`.
        measures: of the run; those without values have no panel.
    """
    with mpl.rc_context(STYLE):
        of_policy = [one for one in measures if one.of == "policy"]
        # All seeds may have diverged before the first step.
        shown = [one for one in of_policy if table[one.name].notna().any()] or of_policy[:2]
        rows = math.ceil(len(shown) / MOST_COLUMNS)
        columns = math.ceil(len(shown) / rows)
        figure = Figure(figsize=(4 * columns, 3.8 * rows), layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes in panels[len(shown) :]:
            axes.set_axis_off()
        for axes, measure, colour in zip(panels, shown, itertools.cycle(COLOURS), strict=False):
            name = measure.name
            by_step = 100 * table.pivot(index="time_step", columns="seed", values=name)
            mean, std = by_step.mean(axis=1), by_step.std(axis=1).fillna(0.0)
            axes.fill_between(
                by_step.index,
                by_step.min(axis=1),
                by_step.max(axis=1),
                color=colour,
                alpha=0.12,
                lw=0,
                label="range",
            )
            axes.fill_between(
                by_step.index,
                (mean - std).clip(lower=100 * measure.bounds[0]),
                (mean + std).clip(upper=100 * measure.bounds[1]),
                color=colour,
                alpha=0.3,
                lw=0,
                label="± 1 std",
            )
            axes.plot(by_step.index, mean, color=colour, label=f"mean over seeds ({by_step.shape[1]})")
            for policy, line in REFERENCE_LINES.items():
                reference = references.get(policy, {}).get(f"mean_{name}")
                if reference is not None and has_level(policy, measure):
                    level = 100 * reference["mean"]
                    label = f"{REFERENCES[policy]} ({level:.1f})"
                    axes.axhline(level, color="black", ls=line, lw=0.8, label=label)
            printed = paper.get(f"mean_{name}")
            if printed is not None:
                axes.axhline(
                    100 * printed[0],
                    color=GREY,
                    ls="--",
                    lw=1,
                    label="paper (sampled), t in [125, 200]",
                )
            axes.set(
                xlabel="time step t",
                ylabel=f"{measure.label} ×100",
                xlim=(0, by_step.index[-1]),
            )
            legend_under(axes)
        set_title(figure, f"{title}; {split} set")
        save_figure(figure, path)


def has_level(policy: str, measure: Quantity) -> bool:
    """Whether a panel of a measure shows the level of a policy of `references.REFERENCES`.

    Accepting everybody or nobody has a level in panels of utilities only: it is fair by most definitions.
    """
    constant = policy in ("accept_all", "reject_all")
    return bool(measure.higher_is_better) or (measure.higher_is_better is False and not constant)


def draw_phase1(curves: PretrainCurves, path: Path, *, title: str) -> None:
    """Draw training and validation loss of Phase I for each seed, and the epochs whose weights were kept."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5, 3.5), layout="constrained")
        axes = figure.subplots()
        for values, colour, label in (
            (curves.train, GREY, "training"),
            (curves.validation, BLUE, "validation"),
        ):
            axes.plot(curves.epochs, values[:, 0], color=colour, lw=0.8, label=f"{label}, a line per seed")
            axes.plot(curves.epochs, values[:, 1:], color=colour, lw=0.8)
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
        legend_under(axes)
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
        by_s = {"S = −1": (s < 0, ORANGE), "S = +1": (s > 0, BLUE)}
        by_label = {
            "ỹ unknown": (~labelled, GREY),
            "ỹ = 0": (labelled & (label == 0), ORANGE),
            "ỹ = 1": (labelled & (label == 1), BLUE),
        }
        for axes, meaning, kinds in zip(
            figure.subplots(1, 2, sharex=True, sharey=True),
            ("by the sensitive attribute", "by the proxy label"),
            (by_s, by_label),
            strict=True,
        ):
            for name, (rows, colour) in kinds.items():
                if rows.any():
                    axes.scatter(*points[rows].T, s=9, color=colour, alpha=0.7, lw=0, label=name)
            axes.set(title=meaning, xlabel="first principal axis of z", ylabel="second principal axis")
            legend_under(axes, columns=3)
        set_title(figure, f"{title}; {100 * share:.0f} % of the latent means' variance shown")
        save_figure(figure, path)


def principal(z: np.ndarray) -> tuple[np.ndarray, float]:
    """Points on their two leading principal axes, shape (N, 2), and the share of variance they show."""
    centred = z - z.mean(0)
    _, singular, axes = np.linalg.svd(centred, full_matrices=False)
    points = centred @ axes[:2].T
    if points.shape[1] == 1:
        points = np.column_stack([points, np.zeros(len(points))])
    return points, (singular[:2] ** 2).sum() / (singular**2).sum()


def legend_under(axes: Axes, columns: int = 2) -> None:
    """Put the legend of a panel below its horizontal axis, where it covers no data."""
    extent = axes.get_window_extent()
    below = -40 * axes.figure.dpi / 72 / extent.height  # the height of the axis' numbers and label, 40 points
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(0, below),
        ncols=columns,
        fontsize=6.5,
        columnspacing=1,
        handlelength=1.8,
        borderaxespad=0,
        borderpad=0,
    )


def set_title(figure: Figure, text: str) -> None:
    """Set a title over the whole figure, wrapped to its width."""
    figure.suptitle(textwrap.fill(text, width=int(14 * figure.get_figwidth())), fontsize=9)


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, with the same bytes for the same figure."""
    with atomic(path) as temporary:
        # `savefig` draws a figure with a layout twice.
        FigureCanvasAgg(figure).print_png(temporary, metadata={"Software": None})
