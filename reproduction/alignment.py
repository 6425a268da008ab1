"""How often a latent means something else for either group, and what that costs: a table and a figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairall import Result
from fairall.display import (
    COLUMN,
    PageFigure,
    PageTable,
    Row,
    legend_below,
    mean_std,
)
from fairall.measuring import APART, OPPOSED, READABLE, label_directions
from fairall.report import dataset_label, measures
from reproduction.figures import ROSE, TEAL
from reproduction.items import figure_of, grid_of, table_of
from reproduction.latents import Space, latent_space
from reproduction.plan import Planned, runs_of

SECTION = "Alignment of the groups' codes"
MEASURES = measures("mean_utility", "mean_dpu", "mean_cfu")
ALIGNED, SWITCHED, FLIPPED = "aligned", "switched", "flipped"
NOTE = (
    f"Seeds by their latent on test people at the end: {SWITCHED} where the groups use other axes "
    f"(latent_variance_gap above {APART:g}), {FLIPPED} where the label is read with opposite signs "
    f"(latent_label_agreement below {OPPOSED:g} and latent_label_auc above {READABLE:g}). Measures of test "
    "people over evaluation.window, ×100: mean ± standard deviation of the aligned seeds; of the others."
)


def states(run: Result) -> pd.Series:
    """State of every seed's latent, by seed; seeds without a latent measure are left out."""
    gap, agreement, auc = (
        run.values(f"latent_{name}") for name in ("variance_gap", "label_agreement", "label_auc")
    )
    found = pd.Series(ALIGNED, index=gap.index, dtype=object)
    opposed = (agreement < OPPOSED) & (auc > READABLE)
    found[opposed.reindex(gap.index, fill_value=False)] = FLIPPED
    found[gap > APART] = SWITCHED
    return found


def alignment_table(planned: Sequence[Planned]) -> PageTable:
    """A row per data set and protocol: how many seeds are misaligned, and measures with and without them."""
    rows, records = [], []
    for one in (one for one in planned if one.run is not None):
        run, protocol = cast(Result, one.run), one.name("protocol")
        found = states(run)
        counts = {"seeds": len(found)} | {name: int((found == name).sum()) for name in (SWITCHED, FLIPPED)}
        means = {}
        cells = [*map(str, counts.values())]
        for measure in MEASURES:
            for side, inside in ((ALIGNED, found == ALIGNED), ("misaligned", found != ALIGNED)):
                some = run.values(measure.name).reindex(found.index[inside]).dropna()
                cells.append(mean_std(some.mean(), some.std()))
                means[f"{measure.name}_{side}"] = float(some.mean()) if len(some) else None
        rows.append(Row(dataset_label(one.dataset), protocol, cells))
        known = {"dataset": one.dataset, "protocol": protocol, "run": run.identity}
        records.append(known | counts | means)
    headings = [f"{measure.heading}, {group}" for measure in MEASURES for group in (ALIGNED, "others")]
    return table_of(
        ["seeds", SWITCHED, FLIPPED, *headings],
        rows,
        records,
        planned,
        key="alignment",
        title=f"Alignment of the groups' codes, FairAll (I+II){_policy(planned)}",
        note=NOTE,
        section=SECTION,
    )


def alignment_figure(planned: Sequence[Planned]) -> PageFigure:
    """Latents of one switched, one flipped and one matched seed on synthetic data."""
    own = [one for one in planned if one.dataset == "synthetic"]
    found = examples(runs_of(own))
    return figure_of(
        "alignment",
        f"A switched, a flipped and a matched latent, synthetic data{_policy(planned)}",
        "Latent means of test people by FairAll's (I+II) policy at the end. An arrow is the direction in "
        "which the label gets more likely in its group.",
        lambda: draw_alignment(found),
        own,
        drawn=bool(found),
        section=SECTION,
    )


def _policy(planned: Sequence[Planned]) -> str:
    return "".join(f", {one.name('initial_policy')} initial policy" for one in planned[:1])


def examples(runs: Sequence[Result]) -> dict[str, Space]:
    """The first switched and flipped seed of runs with axes as learnt, and an aligned one if matched."""
    found: dict[str, Space] = {}
    for run in runs:
        matched = run.config.protocol.latent_frame.name == "matched"
        of_seeds = states(run)
        for state in (ALIGNED,) if matched else (SWITCHED, FLIPPED):
            name = "matched" if matched else state
            these = of_seeds.index[of_seeds == state]
            if name in found or not len(these):
                continue
            space = latent_space(run, these[0])
            if space is not None:
                found[name] = space
    return {name: found[name] for name in (SWITCHED, FLIPPED, "matched") if name in found}


def draw_alignment(spaces: dict[str, Space]) -> Figure:
    """Draw two axes of each latent by group, with the directions of the label."""
    n = len(spaces)
    figure, (panels,) = grid_of(1, n, 2.4, width=2 * COLUMN * n / 3, sharex=True, sharey=True)
    groups = (("S = +1", TEAL, 1), ("S = −1", ROSE, -1))
    handles: dict[str, Any] = {}
    for axes, (name, (z, s, label)) in zip(panels, spaces.items(), strict=True):
        if z.shape[1] == 1:
            z = np.column_stack([z, np.zeros(len(z))])
        z = z[:, np.argsort(-z.var(0))[:2]]
        length = 1.2 * z.std()
        directions = label_directions(z, label > 0, s > 0)
        for (word, colour, sign), direction in zip(groups, directions, strict=True):
            group = s == sign
            axes.scatter(*z[group].T, s=2, color=colour, alpha=0.25, lw=0, rasterized=True)
            handles[word] = axes.plot([], [], "o", ms=3, color=colour)[0]
            if np.isnan(direction).any():
                continue
            # Beside each other, so that parallel arrows are told apart.
            start = z[group].mean(0) + sign * 0.2 * length * direction[::-1] * (-1, 1)
            arrow = {"arrowstyle": "-|>", "color": colour, "lw": 1.6, "shrinkA": 0, "shrinkB": 0}
            axes.annotate("", xy=start + 2 * length * direction, xytext=start, arrowprops=arrow)
        axes.set(title=name, xlabel="first axis of z", box_aspect=1.0)
    panels[0].set_ylabel("second axis of z")
    legend_below(figure, handles, 2)
    return figure
