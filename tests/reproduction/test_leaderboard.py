"""The leaderboard's figures and what its methods are called; its tables are in test_golden.py."""

from collections.abc import Mapping
from dataclasses import replace

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from fairall.display import STYLE
from fairall.report import dataset_label, look_of, method_label
from reproduction.board import DPU, UTILITY, Board, board
from reproduction.leaderboard_figures import board_figures
from reproduction.leaderboard_tables import WORDS, care_table, standings_table, task_table
from reproduction.plan import LEADERBOARD, grid, row_label
from tests.reproduction.collection import made_board, planned

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Board:
    return made_board(tmp_path_factory.mktemp("board"))


@pytest.fixture(scope="module")
def drawn(own: Board) -> Mapping[str, Figure]:
    with mpl.rc_context(STYLE):
        found = {item.key.split("_")[1]: item.draw() for item in board_figures(own) if item.draw is not None}
        for figure in found.values():
            FigureCanvasAgg(figure).draw()
    return found


def test_every_method_of_the_sweeps_has_a_name_a_colour_and_a_mark() -> None:
    methods, datasets = (grid(LEADERBOARD[0])[axis].split(",") for axis in ("model", "dataset"))
    assert {grid(sweep).dataset for sweep in LEADERBOARD} == {",".join(datasets)}
    assert {*map(method_label, methods)}.isdisjoint(methods)
    assert {*map(dataset_label, datasets)}.isdisjoint(datasets)
    assert len({(look_of(name)["color"], look_of(name)["marker"]) for name in methods}) == len(methods)


def test_aggregates_are_those_of_the_standings(own: Board, drawn: Mapping[str, Figure]) -> None:
    standings, panels = own.standings[::-1], drawn["aggregates"].axes
    labels = [label.get_text() for label in panels[0].get_yticklabels()]
    stars = ["*" * (n < len(own.tasks)) for n in standings["tasks"]]
    assert labels == [row_label(name) + star for name, star in zip(standings.index, stars, strict=True)]
    for axes, key in zip(panels, WORDS["panels"], strict=True):
        bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
        lows, highs = (standings[f"{key}_{end}"].dropna().astype(float) for end in ("low", "high"))
        assert [bar.get_x() for bar in bars] == pytest.approx([*100 * lows])
        assert [bar.get_width() for bar in bars] == pytest.approx([*100 * (highs - lows)])


def test_pairs_are_probabilities_of_rows(own: Board, drawn: Mapping[str, Figure]) -> None:
    names = [*own.standings.index]
    for axes, measure in zip(drawn["pairs"].axes, (UTILITY.name, DPU.name), strict=True):
        found = {(names[int(y)], names[int(x)]): t for t in axes.texts for x, y in [t.get_position()]}
        better = own.better[measure]
        assert {pair: text.get_text() for pair, text in found.items()} == {
            pair: f"{100 * one.value:.0f}" for pair, one in better.items()
        }
        bold = {pair for pair, text in found.items() if text.get_fontweight() == "bold"}
        assert bold == {pair for of in own.surely[measure] for pair in (of, of[::-1])}


def test_planes_have_all_methods_and_references_that_do_not_lose(
    own: Board, drawn: Mapping[str, Figure]
) -> None:
    figure = drawn["plane"]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:-4] == [*map(row_label, own.methods)]
    for axes, task in zip(figure.axes, own.tasks, strict=True):
        assert len(axes.containers) == len(task.methods)
        marks = {str(line.get_marker()) for line in axes.lines}
        # On the FICO scores accepting everybody loses, and nothing knows every label.
        assert marks >= {"+", "*", "P"} or task.dataset == "fico"
        assert ("+" in marks) == (task.dataset != "fico")


def test_a_board_without_runs_has_rows_of_missing_ones() -> None:
    needed = planned("leaderboard_methods", "dataset=credit", "model=greedy,plot")
    own = board([replace(one, run=None) for one in needed], {}, {})
    assert [str(cell) for cell in task_table(own, "credit").frame.iloc[:, 1]] == ["missing (not made)"] * 2
    assert [*care_table(own).records["methods"]] == ["every method"]
    assert not any(item.shown for item in (standings_table(own), *board_figures(own)))
