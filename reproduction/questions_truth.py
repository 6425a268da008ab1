"""Labels that depend on the group: which tool has most ground-truth utility, and least CFU, where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall import Result
from fairall.display import BLUE, GREEN, GREY, ORANGE, Item, handles_of, legend_below
from fairall.report import measures
from fairall.results import interval
from reproduction.items import figure_of, grid_of, label_grid
from reproduction.plan import Planned, runs_of
from reproduction.questions_tables import first_table, means_table

EFFECTIVE_TRUE, TRUE, CFU, DPU = measures(
    "effective_ground_truth_utility", "mean_ground_truth_utility", "mean_cfu", "mean_dpu"
)
HELD = replace(CFU, name="mean_cfu_y_held", label="mean CFU, Y held")
MEASURES = {
    "ground-truth utility of applicants ↑": EFFECTIVE_TRUE,
    "ground-truth utility ↑": TRUE,
    "CFU ↓": CFU,
    "CFU, Y held ↓": HELD,
    "DPU ↓": DPU,
}
JUDGED = {heading: MEASURES[heading] for heading in ("ground-truth utility ↑", "CFU ↓", "CFU, Y held ↓")}
NOTHING, LATENT, RATES, OPPORTUNITY = "no fairness term", "latent", "equal rates", "equal opportunity"
COLOURS = {NOTHING: GREY, LATENT: BLUE, RATES: ORANGE, OPPORTUNITY: GREEN}


class World(NamedTuple):
    """How truth and label depend on the group."""

    gap: float  # p(Y = 1 | S = +1) − p(Y = 1 | S = −1)
    bias: float  # coefficient of S in the label's variable

    @property
    def label(self) -> str:
        """Both in words."""
        return f"truth gap {self.gap:g}, label bias {self.bias:g}"


def world_of(run: Result) -> World:
    """The world of a run of synthetic people."""
    model = run.config.dataset["structural_model"]
    share = model["ground_truth_share"]
    of = {int(s): float(own) for s, own in share.items()} if isinstance(share, dict) else {}
    gap = round(of[1] - of[-1], 9) if of else 0.0
    return World(gap, float(model["variables"][model["label"]]["s"]))


def tool_of(run: Result) -> str:
    """What a run does about fairness."""
    if run.name("model") == "fairall_I_II":
        return LATENT
    rules = {"none": NOTHING, "demographic_parity": RATES, "equal_opportunity": OPPORTUNITY}
    return rules[run.config.fairness.rule.name]


def truth_items(planned: Sequence[Planned]) -> list[Item]:
    """The map as a figure, which tool is first in each world, and all numbers."""
    found: dict[World, dict[str, Result]] = {}
    for run in sorted(runs_of(planned), key=world_of):
        found.setdefault(world_of(run), {})[tool_of(run)] = run
    figure = figure_of(
        "questions_truth_map",
        "Ground-truth utility and CFU by truth gap and label bias",
        "Test people of the last policies, mean over seeds with 95 % intervals (Student's t), ×100: "
        "utility by the ground truth against CFU (filled) and CFU with Y held (hollow). Truth gap: "
        "p(Y = 1 | S = +1) − p(Y = 1 | S = −1). Label bias: the coefficient of S in the label's variable.",
        lambda: draw_map(found),
        planned,
        wide=True,
    )
    first = first_table(
        found,
        JUDGED,
        planned,
        key="questions_truth_first",
        title="The first tool by truth gap and label bias",
        note="The first tool, how far it is from the next (×100, 95 % interval, paired by seed), and the "
        "next; bold where they differ at the 5 % level, corrected for all pairs of tools of the world.",
    )
    means = means_table(
        found,
        MEASURES,
        planned,
        key="questions_truth",
        title="Tools where truth and label depend on the group",
        note="×100, mean over seeds with its 95 % interval (Student's t); all but the first column of test "
        "people over evaluation.window. CFU with Y held is CFU where Y does not depend on S.",
    )
    return [figure, first, means]


def draw_map(found: Mapping[World, Mapping[str, Result]]) -> Figure:
    """Draw a panel per world: ground-truth utility against CFU, a mark per tool."""
    gaps, biases = (sorted({world[i] for world in found}) for i in (0, 1))
    figure, panels = grid_of(len(gaps), len(biases), 1.5 * len(gaps) + 0.6, sharex=True, sharey=True)
    for world, runs in found.items():
        axes: Axes = panels[gaps.index(world.gap), biases.index(world.bias)]
        for tool, run in runs.items():
            for measure, filled in ((CFU, True), (HELD, False)):
                x, y = run.spread(measure.name), run.spread(TRUE.name)
                if x is None or y is None:
                    continue  # Y does not depend on S, and CFU holds it
                colour, label = COLOURS[tool], tool if filled else None
                look = {"color": colour, "mfc": colour if filled else "white", "marker": "o", "ms": 4}
                interval(axes, x, y, label=label, **look)
        axes.set_title(world.label)
        axes.axhline(0, color=GREY, lw=0.4)
    label_grid(panels, "CFU ×100", ylabels=["ground-truth\nutility ×100"] * len(gaps))
    legend_below(figure, handles_of(panels.ravel()), 4)
    return figure
