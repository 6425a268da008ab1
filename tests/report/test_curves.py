"""Reference curves of methods, from made-up runs."""

from dataclasses import replace

import numpy as np
import pytest
from fairall.results.finished import read_run

from fairall.report.curves import DATASETS, LEVELS, curves
from fairall.report.plan import Planned
from tests.report.conftest import MakeRun, add_references, planned

WORDS = "model=greedy", "dataset=credit,fico", "schedule.time_steps=6", "evaluation.window=[2,6]"


def made(make_run: MakeRun) -> list[Planned]:
    """Finished runs of greedy on credit and fico after both initial policies."""
    found = []
    for number, one in enumerate(planned("leaderboard_rivals", *WORDS)):
        path = make_run(*one.words, number=number, shift=0.1 * (number + 1))
        for level in LEVELS:
            add_references(path, level, mean_utility=0.3, mean_dpu=0.05)
        found.append(replace(one, run=read_run(path)))
    return found


def test_a_figure_per_method_with_both_initial_policies_and_the_oracles(make_run: MakeRun) -> None:
    runs = made(make_run)
    (item,) = curves(runs)
    assert item.key == "curve_greedy"
    assert item.shown
    assert item.draw is not None
    drawn = item.draw()
    assert [axes.get_title() for axes in drawn.axes] == ["German Credit", ""]
    assert "fico" not in DATASETS
    for axes, measure in zip(drawn.axes, ("utility", "dpu"), strict=True):
        for line, one in zip(axes.lines, [one for one in runs if one.dataset == "credit"], strict=False):
            assert one.run is not None
            curve = 100 * one.run.curve(measure).mean(axis=1)
            np.testing.assert_allclose(np.asarray(line.get_ydata()), curve)
            assert line.get_label() == f"{one.name('initial_policy')} initial policy"
        levels = [float(np.asarray(line.get_ydata())[0]) for line in axes.lines[2:]]
        assert levels == pytest.approx([30 if measure == "utility" else 5] * 2)


def test_a_method_without_runs_is_not_drawn(make_run: MakeRun) -> None:
    greedy = made(make_run)
    plot = planned("leaderboard_rivals", "model=plot", "dataset=credit")
    shown = {item.key: item.shown for item in curves([*greedy, *plot])}
    assert shown == {"curve_greedy": True, "curve_plot": False}
