"""How methods fare in other worlds: the runs of sweeps/worlds_*.yaml as tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall import Result
from fairall.display import (
    COLUMN,
    GREY,
    Item,
    PageFigure,
    PageTable,
    Row,
    handles_of,
    legend_below,
    mean_std,
)
from fairall.report import WITH_ROW, look_of, method_label
from fairall.results import LEVELS, REFERENCES, band
from reproduction.figures import LINES
from reproduction.items import figure_of, table_of
from reproduction.plan import WORLDS, Planned, runs_of
from reproduction.study import Study, unnamed

Levels = dict[str, dict[str, float | None]]
"""Mean and deviation by measure."""

SMOOTH = 10  # time steps of the moving average after a shift
MEASURES = {  # headings of a table's columns
    "effective_utility": "effective utility ↑",
    "regret": "regret ↓",
    "effective_dpu_pooled": "DPU ↓",
    "lost_to_waiting": "utility lost to waiting ↓",
    "utility_per_place": "utility per place ↑",
    "effective_revealed_utility": "by revealed labels",
    "adaptation_time": "adaptation time, steps ↓",
    "mean_score_advantaged": "mean score, S = +1",
    "mean_score_disadvantaged": "mean score, S = −1",
    "score_gap": "gap of scores",
}
LOST = "lost_to_waiting"
COMMON = ("effective_utility", "regret", "effective_dpu_pooled")


@dataclass(frozen=True)
class Part:
    """A part of the world, and its effect on methods.

    Attributes:
        sweep: its runs.
        title: of table and figure.
        key: of the configuration that varies; empty where nothing does.
        axis: label of that key.
        further: measures besides `COMMON`.
    """

    sweep: str
    title: str
    key: str
    axis: str
    further: tuple[str, ...] = ()

    def value(self, run: Result) -> float:
        """The value of the key in a run, 0 in the static world."""
        node: Any = run.config.to_plain()
        for part in self.key.split(".") if self.key else ():
            node = node.get(part, {}) if isinstance(node, dict) else {}
        return float(node) if isinstance(node, int | float) else 0.0


STUDIES = (
    Part(
        "worlds_capacity",
        "Few places",
        "world.capacity.share",
        "places per applicant",
        ("utility_per_place",),
    ),
    Part("worlds_delay", "Late labels", "world.delay.steps", "delay of labels, time steps", (LOST,)),
    Part(
        "worlds_noise",
        "False labels of the disadvantaged",
        "world.noise.disadvantaged.positive",
        "share of good labels shown as bad",
        ("effective_revealed_utility",),
    ),
    Part("worlds_shift", "A shift of the labels at time step 100", "", "", ("adaptation_time",)),
    Part(
        "worlds_feedback",
        "What groups become, by credit scores",
        "",
        "",
        ("mean_score_advantaged", "mean_score_disadvantaged", "score_gap"),
    ),
)


def worlds_items(finished: Sequence[Planned]) -> list[Item]:
    """A figure with a panel per part of the world, and a table of each."""
    found = {part.sweep: [one for one in finished if one.sweep == part.sweep] for part in STUDIES}
    return [_figure(found), *(study_table(part, found[part.sweep]) for part in STUDIES)]


def study_table(part: Part, planned: Sequence[Planned]) -> PageTable:
    """A row per value and policy: mean ± standard deviation over seeds, ×100 but for times."""
    measures = (*COMMON, *part.further)
    rows, records = [], []
    own = runs_of(planned)
    for value in sorted({part.value(run) for run in own}):
        runs = [run for run in own if part.value(run) == value]
        group = f"{part.axis}: {value:g}" if part.key else ""
        policies = {
            method_label(run.name("model")): _of_run(run, measures)
            | (_lost(run, own) if part.further == (LOST,) else {})
            for run in runs
        }
        if part.sweep != "worlds_feedback":  # where applicants depend on the decisions of the policy
            policies |= {REFERENCES[name]: _of_reference(runs[0], name, measures) for name in WITH_ROW}
        for name, values in policies.items():
            rows.append(Row(group, name, [_shown(measure, values.get(measure)) for measure in measures]))
            records += [
                {"value": value, "policy": name, "measure": measure} | spread
                for measure, spread in values.items()
            ]
    return table_of(
        [MEASURES[name] for name in measures],
        rows,
        records,
        planned,
        key=part.sweep,
        title=part.title,
        note="Mean ± standard deviation over seeds on the applicants, ×100 but for times. Regret: against "
        "the oracle of the time step on the same applicants.",
    )


def _of_run(run: Result, measures: Sequence[str]) -> Levels:
    """Mean and deviation over seeds of a run's measures; without those that it does not have."""
    values = {name: run.values(name) for name in measures}
    return {name: _level(some) for name, some in values.items() if len(some)}


def _lost(late: Result, runs: Sequence[Result]) -> Levels:
    """Effective utility of the same method without a delay, less that of a run, paired by seed."""
    for prompt in runs:
        if prompt.name("model") == late.name("model") and not prompt.config.world:
            return {LOST: _level(prompt.values("effective_utility") - late.values("effective_utility"))}
    return {}


def _level(values: pd.Series) -> dict[str, float | None]:
    return {"mean": float(values.mean()), "std": float(values.std())}


def _of_reference(run: Result, policy: str, measures: Sequence[str]) -> Levels:
    found = {name: run.reference(policy, name) for name in measures}
    return {name: {"mean": one.mean, "std": one.std} for name, one in found.items() if one}


def _shown(measure: str, spread: Mapping[str, float | None] | None) -> str:
    if spread is None:
        return ""
    scale, digits = (1, 0) if measure == "adaptation_time" else (100, 1)
    return mean_std(spread["mean"], spread["std"], scale=scale, digits=digits)


def _figure(found: Mapping[str, Sequence[Planned]]) -> PageFigure:
    """One panel per part."""
    runs = {sweep: runs_of(planned) for sweep, planned in found.items()}
    return figure_of(
        "worlds",
        "Methods in other worlds",
        "Above: effective utility in worlds of German Credit, mean and standard deviation over seeds; thin "
        "lines are references on the same applicants. Below: utility of the policy on test people of the "
        f"time step, averaged over {SMOOTH} steps, and its standard deviation over seeds; change of the mean "
        "credit scores of groups whose members apply again and again, thick S = +1, thin S = −1.",
        lambda: _draw(runs),
        [one for planned in found.values() for one in planned],
        drawn=all(runs.values()),
        wide=True,
    )


def _draw(runs: Mapping[str, Sequence[Result]]) -> Figure:
    figure = Figure(figsize=(2 * COLUMN, 4.2), layout="constrained")
    panels: dict[str, Axes] = figure.subplot_mosaic(
        [["a", "a", "b", "b", "c", "c"], ["d", "d", "d", "e", "e", "e"]]
    )
    for name, part in zip("abc", STUDIES, strict=False):
        _against(panels[name], part, runs[part.sweep])
    panels["a"].set_ylabel("effective utility ×100")
    _over_time(panels["d"], runs["worlds_shift"])
    _scores(panels["e"], runs["worlds_feedback"])
    legend_below(figure, handles_of([panels["a"], panels["e"]]), 4)
    return figure


def _look(run: Result) -> dict[str, Any]:
    """Colour, line and label of a policy."""
    name = run.name("model")
    line = LINES[name] if name in LINES else LEVELS[name]
    return {"color": look_of(name)["color"], "label": method_label(name), "ls": line}


def _against(axes: Axes, part: Part, runs: Sequence[Result]) -> None:
    """Effective utility against the value of a study's key."""
    for name in dict.fromkeys(run.name("model") for run in runs):
        own = sorted((run for run in runs if run.name("model") == name), key=part.value)
        values = pd.DataFrame({part.value(run): 100 * run.values("effective_utility") for run in own})
        axes.errorbar(
            values.columns,
            values.mean(),
            values.std(),
            capsize=1.5,
            marker=look_of(name)["marker"],
            ms=3,
            **_look(own[0]),
        )
    for policy in WITH_ROW:
        levels = {part.value(run): run.reference(policy, "effective_utility") for run in runs}
        known = {value: 100 * one.mean for value, one in sorted(levels.items()) if one}
        look: dict[str, Any] = {"color": GREY, "lw": 0.6, "ls": LEVELS[policy]}
        axes.plot([*known], [*known.values()], label=REFERENCES[policy], **look)
    axes.set(title=part.title, xlabel=part.axis)


def _over_time(axes: Axes, runs: Sequence[Result]) -> None:
    """Utility on the people of the time step."""
    for run in runs:
        smooth = run.curve("utility").rolling(SMOOTH, center=True, min_periods=1).mean()
        band(axes, smooth, **_look(run))
    axes.set(title=STUDIES[3].title, xlabel="time step t", ylabel="utility ×100")


def _scores(axes: Axes, runs: Sequence[Result]) -> None:
    """Change of the mean scores of both groups over time by policy."""
    for run in runs:
        for group, width in (("advantaged", 1.1), ("disadvantaged", 0.6)):
            mean = 100 * run.curve(f"mean_score_{group}").mean(axis=1)
            mean -= mean.head(1).sum()
            (drawn,) = axes.plot(mean.index, mean, lw=width, **_look(run))
            if group == "disadvantaged":
                drawn.set_label("")
    axes.set(title=STUDIES[4].title, xlabel="time step t", ylabel="change of mean score ×100")


worlds = Study("worlds", "other worlds", WORLDS, unnamed(worlds_items))
