"""Files of an explanation: a figure, and everything as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall.decide.explain import Explanation, Position
from fairall.results.figures import BLUE, GREY, ORANGE, STYLE, principal, save_figure, set_title
from fairall.storage.files import atomic, tidied

MOST_BARS = 12  # further features are one bar
CELL = 24  # characters of a value


def write_explanation(explanation: Explanation, folder: Path) -> None:
    """Write explanation.png and explanation.json to a folder, which is made where it is missing."""
    with tidied(folder, "explanation.*"):
        draw_explanation(explanation, folder / "explanation.png")
        with atomic(folder / "explanation.json") as temporary:
            temporary.write_text(json.dumps(explanation.to_plain(), indent=1, allow_nan=False) + "\n")


def draw_explanation(explanation: Explanation, path: Path) -> None:
    """Draw the contributions, the person's place among others and, with a latent, their place in it.

    Args:
        explanation: of one decision.
        path: PNG to write.
    """
    with mpl.rc_context(STYLE | {"axes.titlesize": 9}):
        panels = 2 if explanation.position is None else 3
        height = max(3.4, 0.9 + 0.24 * min(len(explanation.contributions), MOST_BARS + 1))
        figure = Figure(figsize=(4 * panels, height), layout="constrained")
        axes = figure.subplots(1, panels)
        _contributions(axes[0], explanation)
        _among_others(axes[1], explanation)
        if explanation.position is not None:
            _in_latent(axes[2], explanation, explanation.position)
        set_title(
            figure,
            f"Probability of acceptance {explanation.probability:.2f} (policy {explanation.policy}), "
            f"{explanation.average:.2f} on average",
        )
        save_figure(figure, path)


def _contributions(axes: Axes, explanation: Explanation) -> None:
    ranked = explanation.ranked
    names = [f"{name} = {value[:CELL]}" for name, value in ranked["value"].items()]
    values, spread = ranked["contribution"].to_numpy(), ranked["spread"].to_numpy()
    if len(names) > MOST_BARS + 1:
        rest = len(names) - MOST_BARS
        names = [*names[:MOST_BARS], f"{rest} others"]
        values = np.append(values[:MOST_BARS], values[MOST_BARS:].sum())
        spread = np.append(spread[:MOST_BARS], np.nan)
    at = np.arange(len(names))[::-1]
    axes.barh(at, values, color=np.where(values < 0, ORANGE, BLUE), height=0.7)
    known = np.isfinite(spread)
    axes.errorbar(
        values[known], at[known], xerr=spread[known], fmt="none", ecolor="black", elinewidth=0.8, capsize=2
    )
    axes.axvline(0.0, color="black", lw=0.8)
    axes.set_yticks(at, names, fontsize=8)
    axes.set(title="what moved it (bars: ± 1 std over seeds)", xlabel="contribution to the probability")


def _among_others(axes: Axes, explanation: Explanation) -> None:
    bins = np.linspace(0.0, 1.0, 21)
    for (name, rows), colour in zip(explanation.groups.items(), (BLUE, ORANGE), strict=True):
        if rows.any():
            share = [1.0 / rows.sum()] * rows.sum()
            own = explanation.others[rows]
            axes.hist(own, bins.tolist(), weights=share, histtype="step", color=colour, label=name)
    axes.axvline(explanation.probability, color="black", lw=1.2, label="this person")
    axes.axvline(explanation.threshold, color=GREY, ls="--", lw=1, label="threshold")
    axes.set(
        title=f"among {len(explanation.others)} others",
        xlabel="probability of acceptance",
        ylabel="share of the group",
        xlim=(0, 1),
    )
    axes.legend(fontsize=7, frameon=True, framealpha=0.85, edgecolor="none")


def _in_latent(axes: Axes, explanation: Explanation, position: Position) -> None:
    points, share = principal(np.vstack([position.others, position.z]))
    first, second = points.T
    shown = axes.scatter(
        first[:-1], second[:-1], c=explanation.others, cmap="cividis", vmin=0.0, vmax=1.0, s=9, lw=0
    )
    axes.scatter(
        first[-1], second[-1], marker="*", s=160, color="white", edgecolor="black", label="this person"
    )
    axes.set(
        title=f"in the latent of seed {position.seed} ({100 * share:.0f} % of its variance)",
        xlabel="first principal axis of z",
        ylabel="second principal axis",
    )
    axes.legend(fontsize=7, loc="best")
    axes.figure.colorbar(shown, ax=axes, label="probability of acceptance", pad=0.02)
