"""Tables and figures of the report and leaderboard of made-up runs, as once found right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from pytest_regressions.file_regression import FileRegressionFixture

from fairall.display import STYLE, Item, PageFigure, PageTable, handles_of, to_csv, to_latex, to_markdown
from reproduction.board import BASELINE, RIVAL
from reproduction.figures import curve_figures
from reproduction.leaderboard_figures import board_figures
from reproduction.leaderboard_tables import (
    care_table,
    method_table,
    standings_table,
    task_table,
    versus_table,
)
from reproduction.report import contents
from tests.reproduction.collection import made_board, results

pytestmark = pytest.mark.whole

WORDS = ["dataset=credit,compas,synthetic", "model=fairall_I_II,fairall_II,fairlog,unfairlog,opt_fair"]
MOST = 24  # records of a table that are kept


def checked(tables: Sequence[PageTable], regression: FileRegressionFixture) -> None:
    """Compare tables as shown, and records of each, at regular distances and with five digits."""
    texts = []
    for table in tables:
        some = table.records.iloc[:: max(1, len(table.records) // MOST)]
        some = some.map(lambda value: f"{value:.5g}" if isinstance(value, float) else value)
        texts.append(f"# {table.key}\n\n{to_markdown(table)}\n{to_csv(replace(table, records=some))}")
    regression.check("\n".join(texts), extension=".md")


def drawn(items: Iterable[Item]) -> str:
    """What figures show: words, and of each shape how many points it has, and where it begins and ends."""
    lines = []
    for item in items:
        if not isinstance(item, PageFigure) or item.draw is None:
            continue
        with mpl.rc_context(STYLE):
            figure = item.draw()
        lines += ["", f"# {item.key}", item.title, item.note, "; ".join(handles_of(figure.axes))]
        for axes in figure.axes:
            ticks = ", ".join(label.get_text() for label in axes.get_yticklabels())
            lines.append(f"## {axes.get_title()}; {axes.get_xlabel()}; {axes.get_ylabel()}: {ticks}")
            shapes = [line.get_xydata() for line in axes.lines]
            shapes += [path.vertices for of in axes.collections for path in of.get_paths()]
            for points in map(np.asarray, filter(len, shapes)):
                lines.append(f"{len(points)}: {points[[0, len(points) // 2, -1]].round(2).tolist()}")
            lines += [f"{t.get_text()} {t.get_fontweight()} {t.get_position()}" for t in axes.texts]
    return "\n".join(lines)


def test_figures_of_the_leaderboard(tmp_path: Path, file_regression: FileRegressionFixture) -> None:
    own = made_board(tmp_path)
    items = [*board_figures(own), *curve_figures(own.planned, note="")]
    file_regression.check(drawn(items), extension=".md")


def test_tables_of_the_leaderboard(tmp_path: Path, file_regression: FileRegressionFixture) -> None:
    own = made_board(tmp_path)
    tables = [standings_table(own, f"leaderboard{kind}") for kind in ("", "_alike", "_short")]
    tables += [task_table(own, dataset) for dataset in own.runs]
    tables += [method_table(own, "greedy"), versus_table(own, BASELINE, RIVAL), care_table(own)]
    checked(tables, file_regression)
    assert not method_table(own, "dcem").shown
    assert not versus_table(own, BASELINE, "dcem").shown


def test_tables_of_a_quick_leaderboard(tmp_path: Path, file_regression: FileRegressionFixture) -> None:
    own = made_board(tmp_path, "preset=quick", "dataset=credit")
    checked([task_table(own, "credit"), method_table(own, "greedy")], file_regression)


@pytest.mark.usefixtures("raw_data")
def test_tables_of_the_report(file_regression: FileRegressionFixture) -> None:
    items, _ = contents(results(), WORDS)
    tables = [item for item in items if isinstance(item, PageTable) and item.shown]
    assert all(to_latex(table).isascii() for table in tables)
    checked(tables, file_regression)
    file_regression.check(drawn(items), basename="test_figures_of_the_report", extension=".md")
