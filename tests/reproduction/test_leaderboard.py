"""The leaderboard's figures and what its methods are called; its tables are in test_golden.py."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fairall.display import STYLE
from fairall.report import dataset_label, look_of, method_label
from reproduction.board import DPU, UTILITY, Board, board
from reproduction.leaderboard_figures import board_figures
from reproduction.leaderboard_tables import care_table, standings_table, task_table
from reproduction.plan import LEADERBOARD, grid, row_label
from tests.reproduction.collection import made_board, planned

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Board:
    return made_board(tmp_path_factory.mktemp("board"))


@pytest.fixture(scope="module")
def drawn(own: Board) -> Mapping[str, Figure]:
    with mpl.rc_context(STYLE):
        found = {item.key: item.draw() for item in board_figures(own) if item.draw is not None}
        for figure in found.values():
            FigureCanvasAgg(figure).draw()
    return found


def test_every_method_of_the_sweeps_has_a_name_a_colour_and_a_mark() -> None:
    axes = [grid(sweep) for sweep in LEADERBOARD]
    methods = axes[0].model.split(",")
    assert len({method_label(name) for name in methods} - {*methods}) == len(methods)
    assert len({(look_of(name)["color"], look_of(name)["marker"]) for name in methods}) == len(methods)
    (datasets,) = {one.dataset for one in axes}
    assert {dataset_label(name) for name in datasets.split(",")}.isdisjoint(datasets.split(","))


def test_aggregates_are_those_of_the_standings(own: Board, drawn: Mapping[str, Figure]) -> None:
    panels = drawn["leaderboard_aggregates"].axes
    standings = own.standings[::-1]
    stars = np.where(standings["tasks"] < len(own.tasks), "*", "")
    labels = [label.get_text() for label in panels[0].get_yticklabels()]
    assert labels == [*(row_label(name) + star for name, star in zip(standings.index, stars, strict=True))]
    keys = ["share", "test_share", "dpu", "probability_of_earning_more", "probability_of_being_fairer"]
    for axes, key in zip(panels, keys, strict=True):
        ends = [
            (bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches if isinstance(bar, Rectangle)
        ]
        known = standings[[f"{key}_low", f"{key}_high"]].astype(float).dropna()
        assert np.array(ends) == pytest.approx(100 * known.to_numpy())


def test_pairs_are_probabilities_of_rows(own: Board, drawn: Mapping[str, Figure]) -> None:
    names = [*own.standings.index]
    for axes, measure in zip(drawn["leaderboard_pairs"].axes, (UTILITY, DPU), strict=True):
        texts = {text.get_position(): (text.get_text(), text.get_fontweight()) for text in axes.texts}
        assert texts == {
            (names.index(second), names.index(first)): (
                f"{100 * one.value:.0f}",
                "bold" if {(first, second), (second, first)} & own.surely[measure.name] else "normal",
            )
            for (first, second), one in own.better[measure.name].items()
        }


def test_planes_have_all_methods_and_references_that_do_not_lose(
    own: Board, drawn: Mapping[str, Figure]
) -> None:
    figure = drawn["leaderboard_plane"]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:-4] == [row_label(name) for name in own.methods]
    for axes, task in zip(figure.axes, own.tasks, strict=True):
        assert len(axes.containers) == len(task.methods)
        shown: Any = {line.get_marker() for line in axes.lines} & {"+", "*", "P"}
        assert shown == (set() if task.dataset == "fico" else {"+", "*", "P"})


def test_a_board_without_runs_has_rows_of_missing_ones() -> None:
    needed = planned("leaderboard_methods", "dataset=credit", "model=greedy,plot")
    own = board([replace(one, run=None) for one in needed], {}, {})
    assert [str(cell) for cell in task_table(own, "credit").frame.iloc[:, 1]] == ["missing (not made)"] * 2
    assert [*care_table(own).records["methods"]] == ["every method"]
    assert not standings_table(own).shown
    assert not any(item.shown for item in board_figures(own))
