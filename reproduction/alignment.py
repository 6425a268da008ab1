"""How often a latent means something else for either group, and what that costs: a table and a figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fairall import Result
from fairall.display import (
    COLUMN,
    PageFigure,
    PageTable,
    Row,
    handles_of,
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
ALIGNED, SWITCHED, FLIPPED, MATCHED = "aligned", "switched", "flipped", "matched"
GROUPS = ("S = +1", TEAL, 1), ("S = −1", ROSE, -1)
NOTE = (
    f"Seeds by their latent on test people at the end: {SWITCHED} where the groups use other axes "
    f"(latent_variance_gap above {APART:g}), {FLIPPED} where the label is read with opposite signs "
    f"(latent_label_agreement below {OPPOSED:g} and latent_label_auc above {READABLE:g}). Measures of test "
    "people over evaluation.window, ×100: mean ± standard deviation of the aligned seeds; of the others."
)


def states(run: Result) -> pd.Series:
    """State of every seed's latent, by seed; seeds without a latent measure are left out."""
    names = "variance_gap", "label_agreement", "label_auc"
    found = pd.DataFrame({name: run.values(f"latent_{name}") for name in names}).dropna(subset="variance_gap")
    opposed = (found["label_agreement"] < OPPOSED) & (found["label_auc"] > READABLE)
    switched = found["variance_gap"] > APART
    return pd.Series(np.select([switched, opposed], [SWITCHED, FLIPPED], ALIGNED), found.index, dtype=object)


def alignment_table(planned: Sequence[Planned]) -> PageTable:
    """A row per data set and protocol: how many seeds are misaligned, and measures with and without them."""
    rows = []
    for one in planned:
        if one.run is not None:
            found = states(one.run)
            cells = [len(found), *((found == name).sum() for name in (SWITCHED, FLIPPED))]
            for measure in MEASURES:
                values = one.run.values(measure.name).reindex(found.index)
                for some in (values[found == ALIGNED], values[found != ALIGNED]):
                    cells.append(mean_std(some.mean(), some.std()))
            rows.append(Row(dataset_label(one.dataset), one.name("protocol"), [*map(str, cells)]))
    headings = [f"{measure.heading}, {group}" for measure in MEASURES for group in (ALIGNED, "others")]
    return table_of(
        ["seeds", SWITCHED, FLIPPED, *headings],
        rows,
        None,
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
        matched = run.config.protocol.latent_frame.name == MATCHED
        wanted = {ALIGNED: MATCHED} if matched else {SWITCHED: SWITCHED, FLIPPED: FLIPPED}
        for seed, state in states(run).drop_duplicates().items():
            name = wanted.get(state)
            if name and name not in found and (space := latent_space(run, seed)) is not None:
                found[name] = space
    return {name: found[name] for name in (SWITCHED, FLIPPED, MATCHED) if name in found}


def draw_alignment(spaces: dict[str, Space]) -> Figure:
    """Draw two axes of each latent by group, with the directions of the label."""
    n = len(spaces)
    figure, (panels,) = grid_of(1, n, 2.4, width=2 * COLUMN * n / 3, sharex=True, sharey=True)
    for axes, (name, (z, s, label)) in zip(panels, spaces.items(), strict=True):
        z = np.pad(z, ((0, 0), (0, 1)))  # for a latent of one axis
        z = z[:, np.argsort(-z.var(0))[:2]]
        length = 1.2 * z.std()
        directions = label_directions(z, label > 0, s > 0)
        for (word, colour, sign), direction in zip(GROUPS, directions, strict=True):
            group = z[s == sign]
            axes.scatter(*group.T, s=2, color=colour, alpha=0.25, lw=0, rasterized=True)
            axes.plot([], [], "o", ms=3, color=colour, label=word)
            # Beside each other, so that parallel arrows are told apart.
            start = group.mean(0) + sign * 0.2 * length * direction[::-1] * (-1, 1)
            if np.isfinite(direction).all():
                scale = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.01}
                axes.quiver(*start, *(2 * length * direction), color=colour, zorder=3, **scale)
        axes.set(title=name, xlabel="first axis of z", box_aspect=1.0)
    panels[0].set_ylabel("second axis of z")
    legend_below(figure, handles_of(panels), 2)
    return figure
