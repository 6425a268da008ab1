"""Are groups treated alike: gaps between their rates, naive, weighted and doubly robust, and their bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fairall.evaluate.analyses.value import BY_OFFICERS
from fairall.evaluate.analysis import FAIRNESS, INTERVALS, NO_ASSUMPTION, Analysis, Picture, Record, Shown
from fairall.evaluate.estimated.estimates import NOTHING
from fairall.evaluate.estimated.fairness import MEASURES, VIEWS
from fairall.evaluate.estimated.officers import OFFICERS
from fairall.evaluate.judgement import Judgement

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {"naive": "naive", "ips": "IPS", "dr": "DR"}
VIEWS_TOLD = (
    "naive: among accepted people with a label; IPS, DR: of all people, from labels weighted by inverse "
    "propensity, and doubly robust."
)


def records(shown: Shown) -> Iterator[Record]:
    """By measure and view, with bounds of each policy."""
    for policy, judged in shown.judged.items():
        for measure, gaps in judged.fairness.items():
            possible = {view: bounds[measure] for view, bounds in judged.bounds.items() if measure in bounds}
            for view, gap in (gaps | possible).items():
                yield {"policy": policy, "measure": measure, "view": view, "value": gap}


def draw(shown: Shown) -> Figure:
    """Draw each measure naive, by IPS and by DR, with intervals, and its bounds; a panel for each policy."""
    from fairall.display.style import handles_of, legend_below
    from fairall.evaluate.drawing import grid

    many = len(shown.evaluations)
    figure, panels = grid(many, height=0.3 + 0.27 * len(MEASURES), sharey=True)
    for axes, (name, evaluation) in zip(panels, shown.evaluations.items(), strict=True):
        draw_on(axes, evaluation)
        axes.set_title(name if many > 1 else "")
    legend_below(figure, handles_of(panels), 4)
    return figure


def draw_on(axes: Axes, evaluation: Judgement) -> dict[str, Any]:
    """Draw the gaps of a policy by measure in each view, and their bounds; the lines of a legend."""
    from fairall.display.style import BLUE, GREEN, GREY, ORANGE, handles_of
    from fairall.evaluate.drawing import points

    gaps, colours = evaluation.fairness.values(), {"naive": GREY, "ips": ORANGE, "dr": BLUE}
    series = [(NAMES[view], colours[view], [views[view] for views in gaps]) for view in VIEWS]
    bounds = evaluation.bounds["no assumption"]
    limits = [bounds[name].interval if name in bounds else NOTHING for name in MEASURES]
    series.append(("no assumption", GREEN, limits))
    points(axes, [measure.label for measure in MEASURES.values()], series)
    axes.set(xlabel="unfairness ×100", xlim=(0.0, None))
    return handles_of([axes])


GAPS = Analysis(
    key="fairness",
    section=FAIRNESS,
    title="Unfairness ×100",
    note=(
        f"Largest difference between groups, 0 is fair, {INTERVALS}. {VIEWS_TOLD} {NO_ASSUMPTION} "
        f"{BY_OFFICERS}"
    ),
    records=records,
    line="measure",
    column="view",
    lines={name: measure.label for name, measure in MEASURES.items()},
    columns=NAMES | {"no assumption": "no assumption", OFFICERS: OFFICERS},
    picture=Picture(
        "gaps",
        "What selection hides",
        f"{VIEWS_TOLD} With 95 % intervals; hollow: estimates without one. no assumption: whatever the "
        "missing labels are.",
        draw,
        wide=lambda shown: shown.difference is not None,
        section="",
    ),
)
