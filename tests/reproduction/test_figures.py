"""What the figures of the report draw, from made-up runs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes

from fairall.report import draw_over_time, measures
from reproduction.figures import draw_against_cost, draw_curves, figures
from reproduction.plan import Planned, with_runs
from tests.reproduction.collection import planned, result

LEVELS = {"accept_all": (0.1, 0.0), "oracle": (0.25, 0.3), "oracle_fair": (0.2, 0.01)}  # utility and DPU
FEW = ("dataset=credit", "schedule.time_steps=6", "evaluation.window=[2,6]")


def known(needed: Sequence[Planned], *measures: str) -> list[Planned]:
    """Finished runs in which the references have `LEVELS` of two measures."""
    of = {policy: dict(zip(measures, levels, strict=True)) for policy, levels in LEVELS.items()}
    return with_runs(needed, [result(*one.words, number=k, references=of) for k, one in enumerate(needed)])


def heights(axes: Axes) -> list[list[float]]:
    return [np.asarray(line.get_ydata(), dtype=float).round(6).tolist() for line in axes.get_lines()]


def test_bands_of_what_cannot_be_negative_end_at_0() -> None:
    made = result("model=fairlog", "dataset=credit", "seeds=5", shift=0.0)
    run = replace(made, steps=made.steps.assign(dpu=made.steps["dpu"].abs()))
    look = {"a": {"label": "a", "color": "C0", "ls": "-"}}
    panels = draw_over_time({"a": run}, measures("dpu", "utility"), look).axes
    bands = [np.asarray(axes.collections[0].get_paths()[0].vertices)[:, 1].min() for axes in panels]
    assert bands[1] < 0.0 == bands[0]


def test_what_every_label_is_worth_is_a_point_in_the_plane() -> None:
    own = known(planned("paper_harsh", "model=fairlog", *FEW), "mean_utility", "mean_dpu")
    (item,) = figures(own, "planes", key="", title="", note="")
    assert item.draw is not None
    points = {line.get_marker(): np.asarray(line.get_xydata()) for line in item.draw().axes[0].get_lines()}
    assert points["*"].tolist() + points["P"].tolist() == [[30.0, 25.0], [1.0, 20.0]]


@pytest.mark.parametrize("n", [1, 2])
def test_what_every_label_is_worth_at_each_cost(n: int) -> None:
    own = known(planned("paper_costs", *FEW)[:n], "effective_utility", "effective_dpu")
    utility, dpu = map(heights, draw_against_cost(own).axes)
    assert [25.0] * n in utility
    assert [1.0] * n in dpu
    values = [100 * one.run.values("effective_utility").mean() for one in own if one.run]
    assert utility[0] == pytest.approx(values)


def test_curves_of_a_method_after_both_initial_policies() -> None:
    own = known(planned("leaderboard_methods", "model=greedy", *FEW), "mean_utility", "mean_dpu")
    levels = {"utility": [25.0, 20.0], "dpu": [30.0, 1.0]}
    for axes, (measure, known_levels) in zip(draw_curves(own).axes, levels.items(), strict=True):
        curves = [100 * one.run.curve(measure).mean(axis=1) for one in own if one.run]
        expected = [*(of.round(6).tolist() for of in curves), *([level] * 2 for level in known_levels)]
        assert heights(axes) == expected
