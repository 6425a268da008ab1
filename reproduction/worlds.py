"""How methods fare in other worlds: the figure of studies/worlds.yaml."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall import Result
from fairall.display import COLUMN, GREY, handles_of, legend_below
from fairall.report import WITH_ROW, look_of, method_label
from fairall.results import LEVELS, REFERENCES, band
from reproduction.figures import LINES
from reproduction.study import Study
from reproduction.values import Facts

SMOOTH = 10  # time steps of the moving average after a shift
EFFECTIVE = "effective_utility"
# Panels above: effective utility by the value of a part of the world.
AGAINST = {
    "worlds_capacity": ("Few places", "places per applicant"),
    "worlds_delay": ("Late labels", "delay of labels, time steps"),
    "worlds_noise": ("False labels of the disadvantaged", "share of good labels shown as bad"),
}


def draw(runs: Sequence[Facts]) -> Figure:
    """Draw a panel per part of the world."""
    figure = Figure(figsize=(2 * COLUMN, 4.2), layout="constrained")
    panels: dict[str, Axes] = figure.subplot_mosaic(
        [["a", "a", "b", "b", "c", "c"], ["d", "d", "d", "e", "e", "e"]]
    )
    for name, (sweep, (title, label)) in zip("abc", AGAINST.items(), strict=True):
        _against(panels[name], [run for run in runs if run["sweep"] == sweep])
        panels[name].set(title=title, xlabel=label)
    panels["a"].set_ylabel("effective utility ×100")
    shifted, fed_back = (
        [run["planned"].run for run in runs if run["sweep"] == sweep]
        for sweep in ("worlds_shift", "worlds_feedback")
    )
    for run in shifted:
        smooth = run.curve("utility").rolling(SMOOTH, center=True, min_periods=1).mean()
        band(panels["d"], smooth, **_look(run))
    title = "A shift of the labels at time step 100"
    panels["d"].set(title=title, xlabel="time step t", ylabel="utility ×100")
    for run in fed_back:
        for group, width in (("advantaged", 1.1), ("disadvantaged", 0.6)):
            mean = 100 * run.curve(f"mean_score_{group}").mean(axis=1)
            mean -= mean.head(1).sum()
            (drawn,) = panels["e"].plot(mean.index, mean, lw=width, **_look(run))
            if group == "disadvantaged":
                drawn.set_label("")
    title = "What groups become, by credit scores"
    panels["e"].set(title=title, xlabel="time step t", ylabel="change of mean score ×100")
    legend_below(figure, handles_of([panels["a"], panels["e"]]), 4)
    return figure


def _look(run: Result) -> dict[str, Any]:
    """Colour, line and label of a policy."""
    name = run.name("model")
    return {
        "color": look_of(name)["color"],
        "label": method_label(name),
        "ls": (LINES | LEVELS)[name],
    }


def _against(axes: Axes, runs: Sequence[Facts]) -> None:
    """Effective utility against the value of a part of the world."""
    by_value = sorted(runs, key=lambda run: run["level"])
    for name in dict.fromkeys(run["model"] for run in runs):
        own = {run["level"]: run["planned"].run for run in by_value if run["model"] == name}
        values = pd.DataFrame({value: 100 * run.values(EFFECTIVE) for value, run in own.items()})
        look = {"marker": look_of(name)["marker"], "ms": 3, "capsize": 1.5}
        axes.errorbar(values.columns, values.mean(), values.std(), **look, **_look(next(iter(own.values()))))
    for policy in WITH_ROW:
        levels = {run["level"]: run["planned"].run.reference(policy, EFFECTIVE) for run in by_value}
        known = {value: 100 * one.mean for value, one in levels.items() if one}
        line: dict[str, Any] = {"color": GREY, "lw": 0.6, "ls": LEVELS[policy]}
        axes.plot([*known], [*known.values()], label=REFERENCES[policy], **line)


worlds = Study("worlds", draw, lambda runs: len({run["sweep"] for run in runs}) == len(AGAINST) + 2)
