"""The leaderboard's names, and a board without runs; tables and figures are in test_golden.py."""

from dataclasses import replace

from fairall.report import dataset_label, look_of, method_label
from reproduction.board import Board
from reproduction.leaderboard_figures import board_figures
from reproduction.leaderboard_tables import care_table, standings_table, task_table
from reproduction.plan import LEADERBOARD, grid
from tests.reproduction.collection import planned


def test_every_method_of_the_sweeps_has_a_name_a_colour_and_a_mark() -> None:
    methods, datasets = (grid(LEADERBOARD[0])[axis].split(",") for axis in ("model", "dataset"))
    assert {grid(sweep).dataset for sweep in LEADERBOARD} == {",".join(datasets)}
    assert {*map(method_label, methods)}.isdisjoint(methods)
    assert {*map(dataset_label, datasets)}.isdisjoint(datasets)
    assert len({(look_of(name)["color"], look_of(name)["marker"]) for name in methods}) == len(methods)


def test_a_board_without_runs_has_rows_of_missing_ones() -> None:
    needed = planned("leaderboard_methods", "dataset=credit", "model=greedy,plot")
    own = Board([replace(one, run=None) for one in needed], {}, {})
    assert [str(cell) for cell in task_table(own, "credit").frame.iloc[:, 1]] == ["missing (not made)"] * 2
    assert [*care_table(own).records["name"]] == ["every method"]
    assert not any(item.shown for item in (standings_table(own), *board_figures(own)))
