import warnings
from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairall import Result
from fairall.report import draw_over_time
from reproduction.figures import ORACLES, draw_against_cost, draw_curves, draw_plane
from reproduction.plan import EFFECTIVE, ON_SYNTHETIC, with_runs
from tests.reproduction.collection import planned, result

LOOK = {"fairlog": {"label": "FairLog", "color": "C0", "ls": "-"}}


def panels(figure: Figure) -> list[Axes]:
    return [axes for axes in figure.get_axes() if axes.axison]


def levels(axes: Axes) -> list[float]:
    """Heights of the horizontal lines of a panel."""
    heights = [np.asarray(line.get_ydata()) for line in axes.get_lines()]
    return [round(float(y[0]), 6) for y in heights if len(y) == 2]


def test_bands_of_what_cannot_be_negative_end_at_0() -> None:
    made = result("model=fairlog", "dataset=credit", "seeds=5", shift=0.0)
    unfairness = {name: made.steps[name].abs() for name in ("dpu", "cfu")}
    run = replace(made, steps=made.steps.assign(**unfairness))
    assert (run.curve("dpu").mean(axis=1) < run.curve("dpu").std(axis=1)).any()
    figure = draw_over_time({"fairlog": run}, ON_SYNTHETIC, LOOK)
    lowest = {
        measure.name: np.asarray(axes.collections[0].get_paths()[0].vertices)[:, 1].min()
        for axes, measure in zip(panels(figure), ON_SYNTHETIC, strict=True)
    }
    assert lowest["dpu"] == lowest["cfu"] == 0.0
    assert lowest["utility"] < 0
    assert lowest["ground_truth_utility"] < 0


def known(*words: str, utility: str, dpu: str, number: int = 0) -> Result:
    """A result with measures of the references, under the given keys."""
    references = {"accept_all": {utility: 0.1, dpu: 0.0}, "oracle": {utility: 0.25, dpu: 0.3}}
    references["oracle_fair"] = {utility: 0.2, dpu: 0.01}
    return result(*words, number=number, references=references)


def test_what_every_label_is_worth_is_a_point_in_the_plane() -> None:
    run = known("model=fairlog", "dataset=credit", "seeds=2", utility="mean_utility", dpu="mean_dpu")
    points = draw_plane({"credit": {"fairlog": run}}).get_axes()[0].get_lines()
    assert [
        (float(line.get_xdata()[0]), float(line.get_ydata()[0]))  # type: ignore[arg-type]
        for line in points
        if line.get_marker() in ORACLES.values()
    ] == [(30.0, 25.0), (1.0, 20.0)]


def test_a_single_cost_is_drawn_without_warnings() -> None:
    run = result("model=fairall_I_II", "dataset=credit", "initial_policy=harsh")
    any_cost = next(one for one in planned("paper_costs", "dataset=credit") if one.dataset == "credit")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_against_cost([replace(any_cost, run=run)], EFFECTIVE)


def test_what_every_label_is_worth_at_each_cost() -> None:
    words = ["model=fairall_I_II", "dataset=credit", "initial_policy=harsh"]
    any_cost = planned("paper_costs", "dataset=credit")[0]
    keys = {"utility": "effective_utility", "dpu": "effective_dpu"}
    runs = [known(*words, f"cost.value={c}", number=i, **keys) for i, c in enumerate((0.4, 0.6))]
    figure = draw_against_cost([replace(any_cost, run=run) for run in runs], EFFECTIVE)
    utility, dpu = (
        [list(map(float, line.get_ydata())) for line in axes.get_lines()]  # type: ignore[arg-type]
        for axes in figure.get_axes()
    )
    assert [25.0, 25.0] in utility
    assert [1.0, 1.0] in dpu


def test_curves_of_a_method_after_both_initial_policies() -> None:
    words = ("model=greedy", "dataset=credit,fico", "schedule.time_steps=6", "evaluation.window=[2,6]")
    needed = planned("leaderboard_methods", *words)
    keys = {"utility": "mean_utility", "dpu": "mean_dpu"}
    runs = [known(*one.words, number=k, **keys) for k, one in enumerate(needed)]
    own = [one for one in with_runs(needed, runs) if one.dataset == "credit"]
    drawn = draw_curves(own)
    assert [axes.get_title() for axes in drawn.axes] == ["German Credit", ""]
    for axes, measure in zip(drawn.axes, ("utility", "dpu"), strict=True):
        for line, one in zip(axes.lines, own, strict=False):
            assert one.run is not None
            curve = 100 * one.run.curve(measure).mean(axis=1)
            np.testing.assert_allclose(np.asarray(line.get_ydata()), curve)
            assert line.get_label() == f"{one.name('initial_policy')} initial policy"
        assert levels(axes) == ([25.0, 20.0] if measure == "utility" else [30.0, 1.0])
