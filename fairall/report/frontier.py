"""Utility against the gap between groups: runs of methods at several slacks, on one picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall.config.compose import compose_all
from fairall.display.format import mean_interval, number
from fairall.display.page import PageFigure, cautioned, write_page
from fairall.display.progress import Display
from fairall.display.style import COLUMN, GREY, handles_of, legend_below
from fairall.display.table import PageTable, Row, frame_of, records_of
from fairall.errors import FairAllError
from fairall.experiment import is_finished, run
from fairall.metrics import Quantity
from fairall.report.labels import dataset_label, look_of, measures, method_label
from fairall.results.figures import interval
from fairall.results.paper import REFERENCES
from fairall.results.result import Result

SLACKS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 1.0)
ORACLE = "oracle_fair"
# Utility and gap: of the decisions taken, and of the policy on the evaluation people.
AXES = {
    "demographic_parity": (("effective_utility", "effective_dpu_pooled"), ("mean_utility", "mean_dpu")),
    "equal_opportunity": (("mean_utility", "mean_equal_opportunity"),),
}


@dataclass(frozen=True)
class Point:
    """A run of a frontier: `slack` is None for the method without thresholds of groups."""

    dataset: str
    model: str
    slack: float | None
    result: Result

    @property
    def label(self) -> str:
        """Name of the method."""
        return REFERENCES["oracle"] if self.model == ORACLE else method_label(self.model)


def points(words: Sequence[str], display: Display) -> list[Point]:
    """Make the runs of a frontier, or read them where they are done.

    Args:
        words: of the command line, KEY=VALUE; `model`, `dataset` and `fairness.slack` may have several values
            with commas between them. `fairness` is demographic_parity unless given.
        display: for the progress of each run.

    Raises:
        FairAllError: where a value is impossible, or as `experiment.run`.
    """
    given = dict(word.split("=", 1) for word in words)
    models, data_sets = (given.pop(key, "").split(",") for key in ("model", "dataset"))
    if "" in (*models, *data_sets):
        raise FairAllError(
            "frontier takes model=A,B and dataset=A,B, for instance model=ensemble dataset=credit"
        )
    rule = given.pop("fairness", "demographic_parity")
    if rule not in AXES:
        raise FairAllError(f"fairness={rule}: a frontier is of {' or '.join(AXES)}")
    slacks = given.pop("fairness.slack", ",".join(map(str, SLACKS))).split(",")
    rest = [f"{key}={value}" for key, value in given.items()]
    wanted: list[tuple[str, str, float | None, list[str]]] = []
    for data_set in data_sets:
        for model in dict.fromkeys([*models, ORACLE]):
            own = [f"model={model}", f"dataset={data_set}", *rest]
            node = "model.fairness" if model == ORACLE else "fairness"
            chosen = [f"model.fairness.rule={rule}"] if model == ORACLE else [f"fairness={rule}"]
            if model != ORACLE:
                wanted.append((data_set, model, None, [*own, "fairness=none"]))
            for slack in slacks:
                wanted.append((data_set, model, _number(slack), [*own, *chosen, f"{node}.slack={slack}"]))
    composed = compose_all(command for *_, command in wanted)
    people: dict[str, Any] = {}
    for one in composed:
        is_finished(one, people)  # refuses what is impossible before the first run
    found = []
    for i, (data_set, model, of, command) in enumerate(wanted):
        display.say(f"{i + 1} of {len(wanted)}: {' '.join(command)}")
        found.append(Point(data_set, model, of, run(composed[i], display=Display(progress_only=True))))
    return found


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError as error:
        raise FairAllError(f"fairness.slack={word}: numbers from 0 to 1, with commas between them") from error


def frontier(found: Sequence[Point], folder: Path) -> list[PageTable]:
    """Write index.html, tables/ and figures/ on the points; return the tables.

    Args:
        found: of `points`.
        folder: to write to.

    Raises:
        FairAllError: where `folder` cannot be written.
    """
    rule = next(point for point in found if point.model == ORACLE).result.config.model["fairness"]["rule"]
    pairs = [measures(*names) for names in AXES[rule]]
    data_sets = list(dict.fromkeys(point.dataset for point in found))
    rows: list[Row] = []
    records: list[dict[str, object]] = []
    for point in found:
        run, slack = point.result, "none" if point.slack is None else number(point.slack, 1, 2)
        spreads = {one.name: run.spread(one.name) for pair in pairs for one in pair}
        cells = ["" if one is None else mean_interval(one) for one in spreads.values()]
        rows.append(Row(dataset_label(point.dataset), point.label, [slack, *cells]))
        who = {"dataset": point.dataset, "model": point.model, "slack": point.slack, "run": run.identity}
        records += [
            who | {"measure": name, "mean": one.mean, "std": one.std, "interval": one.interval}
            for name, one in spreads.items()
            if one is not None
        ]
    table = PageTable(
        key="frontier",
        title=f"Utility and gap by slack, {rule.replace('_', ' ')}",
        note="×100, mean and 95 % interval over seeds. Slack: the largest gap allowed; none: without "
        "thresholds of groups.",
        frame=frame_of(["slack", *(one.heading for pair in pairs for one in pair)], rows),
        records=records_of(records),
    )
    figure = PageFigure(
        key="utility_against_gap",
        title="Utility against the gap",
        note="A line joins the slacks of a method, whose numbers are the gap allowed ×100; the large mark is "
        "without. Bars: 95 % intervals over seeds. Grey: such thresholds by a classifier that knows every "
        "label.",
        draw=lambda: draw(found, data_sets, pairs),
        wide=True,
    )
    items = cautioned([table, figure], found[0].result.config.preset)
    write_page(folder, "FairAll: the frontier", {"": items})
    return [item for item in items if isinstance(item, PageTable)]


def draw(found: Sequence[Point], data_sets: Sequence[str], pairs: Sequence[Sequence[Quantity]]) -> Figure:
    """A row of panels per data set and a column per pair of measures."""
    size = COLUMN * len(pairs), 0.8 * COLUMN * len(data_sets)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(data_sets), len(pairs), squeeze=False)
    for data_set, row in zip(data_sets, panels, strict=True):
        own = [point for point in found if point.dataset == data_set]
        for (utility, gap), axes in zip(pairs, row, strict=True):
            for model in dict.fromkeys(point.model for point in own):
                _curve(axes, [point for point in own if point.model == model], utility, gap)
            axes.set(
                title=dataset_label(data_set), xlabel=f"{gap.heading} ×100", ylabel=f"{utility.heading} ×100"
            )
    legend_below(figure, handles_of(panels.ravel()), 3)
    return figure


def _curve(axes: Axes, own: Sequence[Point], utility: Quantity, gap: Quantity) -> None:
    oracle = own[0].model == ORACLE
    look = {"color": GREY, "marker": "."} if oracle else look_of(own[0].model)
    for point in own:
        x, y = (point.result.spread(one.name) for one in (gap, utility))
        if x is not None and y is not None:
            interval(axes, x, y, ms=9 if point.slack is None else 4, **look)
    curve = [
        (p.slack, p.result.spread(gap.name), p.result.spread(utility.name))
        for p in own
        if p.slack is not None
    ]
    known = [(100 * x.mean, 100 * y.mean, slack) for slack, x, y in curve if x is not None and y is not None]
    axes.plot(
        *zip(*(place for *place, _ in known), strict=True),
        lw=1,
        label=own[0].label,
        ls="--" if oracle else "-",
        color=look["color"],
    )
    for across, up, slack in known:
        # Beside the bars of the intervals: below for the oracle, whose curve is near those of good methods.
        axes.annotate(
            f"{100 * slack:g}",
            (across, up),
            (3, -8 if oracle else 3),
            textcoords="offset points",
            fontsize=6,
            color=look["color"],
        )
