"""What the figures of the report draw, from made-up runs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes

from fairall import Result
from fairall.report import draw_over_time
from reproduction.figures import draw_against_cost, draw_curves, figures
from reproduction.plan import ON_SYNTHETIC, Planned, with_runs
from tests.reproduction.collection import planned, result

LEVELS = {"accept_all": (0.1, 0.0), "oracle": (0.25, 0.3), "oracle_fair": (0.2, 0.01)}  # utility and DPU
FEW = ("schedule.time_steps=6", "evaluation.window=[2,6]")


def known(needed: Sequence[Planned], *measures: str) -> list[Planned]:
    """Finished runs in which the references have `LEVELS` of two measures."""
    of = {policy: dict(zip(measures, levels, strict=True)) for policy, levels in LEVELS.items()}
    return with_runs(needed, [result(*one.words, number=k, references=of) for k, one in enumerate(needed)])


def lines(axes: Axes) -> list[list[float]]:
    return [np.asarray(line.get_ydata(), dtype=float).round(6).tolist() for line in axes.get_lines()]


def test_bands_of_what_cannot_be_negative_end_at_0() -> None:
    made = result("model=fairlog", "dataset=credit", "seeds=5", shift=0.0)
    unfairness = {name: made.steps[name].abs() for name in ("dpu", "cfu")}
    run: Result = replace(made, steps=made.steps.assign(**unfairness))
    figure = draw_over_time({"a": run}, ON_SYNTHETIC, {"a": {"label": "a", "color": "C0", "ls": "-"}})
    lowest = [
        np.asarray(axes.collections[0].get_paths()[0].vertices)[:, 1].min()
        for axes in figure.axes[: len(ON_SYNTHETIC)]
    ]
    assert [low < 0 for low in lowest] == [
        not one.name.endswith("fu") and one.name != "dpu" for one in ON_SYNTHETIC
    ]
    assert lowest.count(0.0) == 2


def test_what_every_label_is_worth_is_a_point_in_the_plane() -> None:
    needed = planned("paper_harsh", "dataset=credit", "model=fairlog", *FEW)
    (item,) = figures(known(needed, "mean_utility", "mean_dpu"), "planes", key="", title="", note="")
    assert item.draw is not None
    points = {line.get_marker(): line.get_xydata() for line in item.draw().axes[0].get_lines()}
    assert [np.asarray(points[mark]).tolist() for mark in ("*", "P")] == [[[30.0, 25.0]], [[1.0, 20.0]]]
    assert "+" not in points


@pytest.mark.parametrize("n", [1, 2])
def test_what_every_label_is_worth_at_each_cost(n: int) -> None:
    own = known(planned("paper_costs", "dataset=credit", *FEW)[:n], "effective_utility", "effective_dpu")
    utility, dpu = draw_against_cost(own).axes
    assert [25.0] * n in lines(utility)
    assert [1.0] * n in lines(dpu)
    values = [100 * one.run.values("effective_utility").mean() for one in own if one.run]
    assert lines(utility)[0] == pytest.approx(values)


def test_curves_of_a_method_after_both_initial_policies() -> None:
    needed = planned("leaderboard_methods", "model=greedy", "dataset=credit", *FEW)
    own = known(needed, "mean_utility", "mean_dpu")
    figure = draw_curves(own)
    assert [axes.get_title() for axes in figure.axes] == ["German Credit", ""]
    for axes, measure, levels in zip(
        figure.axes, ("utility", "dpu"), ([25.0, 20.0], [30.0, 1.0]), strict=True
    ):
        curves = [100 * one.run.curve(measure).mean(axis=1) for one in own if one.run]
        assert [one for one in lines(axes) if len(one) > 2] == [of.round(6).tolist() for of in curves]
        assert [one[0] for one in lines(axes) if len(one) == 2] == levels
