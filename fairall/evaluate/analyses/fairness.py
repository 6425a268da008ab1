"""Are groups treated alike: gaps between their rates, naive, weighted and doubly robust, and their bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairall.evaluate.analyses.value import BY_OFFICERS
from fairall.evaluate.analysis import FAIRNESS, INTERVALS, NO_ASSUMPTION, Analysis, Picture, Record
from fairall.evaluate.estimated.fairness import MEASURES
from fairall.evaluate.estimated.officers import OFFICERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fairall.evaluate.analysis import Shown
    from fairall.evaluate.judgement import Judgement

NAMES = {"naive": "naive", "ips": "IPS", "dr": "DR"}
VIEWS_TOLD = (
    "naive: among accepted people with a label; IPS, DR: of all people, from labels weighted by inverse "
    "propensity, and doubly robust."
)


def records(shown: Shown) -> Iterator[Record]:
    """By measure and view, with bounds of each policy."""
    for policy, evaluation in shown.evaluations.items():
        bounds = {"no assumption": evaluation.bounds, OFFICERS: evaluation.officers}
        for measure, views in evaluation.fairness.items():
            possible = {view: found[measure] for view, found in bounds.items() if measure in found}
            for view, gap in (views | possible).items():
                yield {"policy": policy, "measure": measure, "view": view, "value": gap}
    if shown.difference is not None:
        for measure, views in shown.difference.fairness.items():
            for view, gap in views.items():
                yield {"policy": "B − A", "measure": measure, "view": view, "value": gap}


def note(shown: Shown) -> str:
    """What the columns are."""
    note = f"Largest difference between groups, 0 is fair, {INTERVALS}. {VIEWS_TOLD} {NO_ASSUMPTION}"
    return note + (BY_OFFICERS if shown.first.officers else "")


def draw(shown: Shown) -> Figure:
    """Draw each measure naive, by IPS and by DR, with intervals, and its bounds; a panel for each policy."""
    from matplotlib.figure import Figure

    from fairall.display.style import COLUMN, legend_below

    many, lines = len(shown.evaluations), dict[str, Any]()
    figure = Figure(figsize=(COLUMN * many, 0.6 + 0.27 * len(MEASURES)), layout="constrained")
    panels = figure.subplots(1, many, sharey=True, squeeze=False)[0]
    for axes, (name, evaluation) in zip(panels, shown.evaluations.items(), strict=True):
        lines = draw_on(axes, evaluation)
        axes.set_title(name if many > 1 else "")
    legend_below(figure, lines, 4)
    return figure


def draw_on(axes: Axes, evaluation: Judgement) -> dict[str, Any]:
    """Draw the gaps of a policy by measure in each view, and their bounds; the lines of a legend."""
    from fairall.display.style import BLUE, GREY, ORANGE
    from fairall.evaluate.drawing import lines_of, point, rows_of

    colours = {"naive": GREY, "ips": ORANGE, "dr": BLUE}
    for row, measure in enumerate(MEASURES):
        for k, (view, gap) in enumerate(evaluation.fairness[measure].items()):
            point(axes, gap, row + 0.2 * (k - 1.5), colours[view])
        if measure in evaluation.bounds:
            point(axes, evaluation.bounds[measure].interval, row + 0.3, GREY, lw=0.6)
    rows_of(axes, [measure.label for measure in MEASURES.values()])
    axes.set_xlabel("unfairness ×100")
    axes.set_xlim(left=0.0)
    lines = lines_of((NAMES[view], colour) for view, colour in colours.items())
    bounds = lines_of([("no assumption", GREY)])
    bounds["no assumption"].set(marker="", linewidth=0.6)
    return lines | bounds


GAPS = Analysis(
    key="fairness",
    section=FAIRNESS,
    title="Unfairness ×100",
    note=note,
    records=records,
    line="measure",
    column="view",
    lines={name: measure.label for name, measure in MEASURES.items()},
    columns=NAMES | {"no assumption": "no assumption", OFFICERS: OFFICERS},
    picture=Picture(
        "gaps",
        "What selection hides",
        f"{VIEWS_TOLD} With 95 % intervals; hollow: estimates without one. Thin lines: whatever the missing "
        "labels are.",
        draw,
        wide=False,
        section="",
    ),
)
