"""The page docs/findings.md: its text and figures are those of the tables of results in docs/."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from fairall import FairAllError
from reproduction import findings
from reproduction.findings import DOCS, FIGURES, INTERVAL, cell, numbers, table, text
from reproduction.pages import BLOCK

TABLES = DOCS / "tables"
EMPTY = r"<!-- begin: \1 -->\n<!-- end: \1 -->"


def rows_of(name: str) -> list[dict[str, str]]:
    """A file of results as it lies there."""
    with (TABLES / f"{name}.csv").open(newline="") as stream:
        return list(csv.DictReader(stream))


def lines_of(page: str, key: str) -> list[list[str]]:
    """The rows of a block of a page as they lie there, without marks of Markdown."""
    block = (DOCS / page).read_text().split(f"<!-- begin: {key} -->")[1].split("<!-- end")[0]
    lines = [line for line in block.splitlines() if line.startswith("|")]
    return [[part.strip() for part in line.replace("\\", "").split("|")[1:-1]] for line in lines]


def decimals(shown: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?", shown.replace("−", "-"))]


def intervals(figure: Figure, panel: int) -> list[tuple[float, float, float]]:
    """Means with their ends, as drawn by `errorbar` in a panel."""
    found = []
    for container in figure.axes[panel].containers:
        line, _, (bars,) = container
        ((low, _), (high, _)) = bars.get_segments()[0]
        (mean,) = np.asarray(line.get_xdata(), dtype=float)
        found.append((mean, low, high))
    return found


def spreads(cells: list[str]) -> list[tuple[float, float, float]]:
    """Means with one deviation to either side."""
    found = [decimals(shown)[:2] for shown in cells]
    return [(mean, mean - std, mean + std) for mean, std in found]


def same(drawn: list[tuple[float, float, float]], expected: list[tuple[float, float, float]]) -> None:
    assert len(drawn) == len(expected)
    for one, other in zip(drawn, expected, strict=True):
        assert one == pytest.approx(other)


def test_the_page_is_what_its_command_writes() -> None:
    page = (DOCS / "findings.md").read_text()
    assert BLOCK.sub(EMPTY, page) == text(), "make findings"
    keys = [key for key, content in BLOCK.findall(page) if content]
    assert keys == [one.key for one in FIGURES]
    assert len(keys) == 6
    assert all((DOCS / "figures" / f"{key}.png").is_file() for key in keys)
    assert 1500 <= len(text().split()) <= 2500


def test_deviations_of_one_split_and_of_twenty() -> None:
    figure = findings.draw_splits()
    files = [rows_of("temporal_harsh_corrected_expected"), rows_of("temporal_splits_harsh")]
    for panel, group in enumerate(("COMPAS", "German Credit", "MEPS")):
        cells = [[row["mean utility ↑"] for row in rows if row["group"] == group][:5] for rows in files]
        same(intervals(figure, panel), spreads([*cells[0], *cells[1]]))


def test_printed_means_are_outside_where_the_table_says_so() -> None:
    figure = findings.draw_printed()
    for axes, policy in zip(figure.axes, ("harsh", "lenient"), strict=True):
        cells = [row["effective utility ↑"] for row in rows_of(f"printed_mean_{policy}_published_code")]
        drawn = [line for line in axes.get_lines() if line.get_marker() == "o"]
        bars = [patch for container in axes.containers for patch in container]
        for line, bar, shown in zip(drawn, bars, cells, strict=True):
            beside = shown[shown.rindex("(") :]
            printed, low, high = decimals(beside)
            assert (line.get_label() == "printed, inside") == ("inside" in beside)
            assert list(np.asarray(line.get_xdata())) == [printed]
            assert (bar.get_x(), bar.get_x() + bar.get_width()) == pytest.approx((low, high))


@pytest.mark.parametrize(
    ("panel", "key", "group", "column"),
    [
        (0, "ablation", "all data sets", "effective utility ↑"),
        (1, "ablation", "all data sets", "DPU ↓"),
        (2, "ablation_bias_effects", "", "ground-truth utility ↑"),
    ],
)
def test_effects_are_those_of_the_ablation(panel: int, key: str, group: str, column: str) -> None:
    head, _, *rows = lines_of("ablation.md", key)
    shown = {row[0]: row[head.index(column)] for row in rows if row[1] == group}
    expected = [tuple(decimals(shown[part])) for part in findings.PARTS if part in shown]
    assert len(expected) == (4 if panel == 2 else 7)
    same(intervals(findings.draw_parts(), panel), expected)  # type: ignore[arg-type]


def test_methods_are_compared_with_accepting_everybody() -> None:
    figure = findings.draw_credit()
    rows = {row["name"]: row for row in rows_of("leaderboard_credit")}
    methods = [row for row in rows.values() if row["CPU seconds"]]
    methods.sort(key=lambda row: int(decimals(row["rank by utility"].replace("*", ""))[0]))
    for panel, column in enumerate(("effective utility ↑", "test utility ↑")):
        base = float(rows["accept everybody"][column])
        expected = [
            (mean - base, low - base, high - base)
            for mean, low, high in spreads([row[column] for row in methods])
        ]
        same(intervals(figure, panel), expected)


def test_coverage_is_that_of_the_simulation() -> None:
    figure = findings.draw_audits()
    rows = {(row["group"], row["name"]): row for row in rows_of("scores")}
    panels = iter(figure.axes)
    for selection in ("selected by the score itself", "selected by another score"):
        for score in ("AUC", "KS", "label − score"):
            robust, alone, _ = next(panels).get_lines()
            for line, name in ((robust, score), (alone, f"{score}, accepted alone")):
                cells = [rows[selection, name][f"{size} rows"] for size in ("1,000", "2,000", "10,000")]
                shares = [re.search(r"([\d.]+) %", shown) for shown in cells]
                assert [float(share[1]) for share in shares if share] == list(np.asarray(line.get_ydata()))
            assert list(np.asarray(robust.get_xdata())) == [1000, 2000, 10000]


def test_answers_are_those_of_the_pages_of_the_questions() -> None:
    figure = findings.draw_questions()
    head, _, *rows = lines_of("questions_truth.md", "questions_truth")
    columns = head.index("CFU ↓"), head.index("ground-truth utility ↑")
    worlds = ("truth gap 0, label bias 1", "truth gap 0.4, label bias 1")
    shown = {tuple(row[:2]): tuple(decimals(row[k])[0] for k in columns) for row in rows}
    drawn = [(*line.get_xdata(), *line.get_ydata()) for line in figure.axes[0].get_lines()]  # type: ignore[misc]
    assert drawn == [shown[world, tool] for world in worlds for tool in findings.COLOURS]
    head, _, *rows = lines_of("questions_hidden.md", "questions_hidden")
    columns = head.index("utility after the warm-up ↑"), head.index("utility later ↑")
    cells = [row for row in rows if row[0] == "COMPAS, Γ = 3, exploration: none"]
    same(intervals(figure, 1), [tuple(decimals(row[k])) for k in columns for row in cells])  # type: ignore[misc]
    head, _, *rows = lines_of("questions_groups.md", "questions_groups_differences")
    utility = {tuple(row[:2]): decimals(row[head.index("utility ↑")].replace("*", "")) for row in rows}
    sets = [f"{name}, 4 groups" for name in ("COMPAS", "Adult", "MEPS", "Law school")] + ["COMPAS, 8 groups"]
    names = ("FairAll (I+II)", "FairAll (I+II), cut, memory of all")
    same(intervals(figure, 2), [tuple(utility[one, name]) for name in names for one in sets])  # type: ignore[misc]
    head, _, *rows = lines_of("questions_amounts.md", "questions_amounts_paired")
    money = [decimals(row[head.index("money per 100 test people ↑")].replace("*", "")) for row in rows]
    same(intervals(figure, 3), [tuple(one) for one in money])  # type: ignore[misc]


def test_a_table_is_read_from_its_file_or_from_its_block() -> None:
    assert cell("leaderboard_credit", "harsh initial policy", "accept everybody", "DPU ↓") == "0.0"
    assert cell("ablation", "cut − drawn", "MEPS", "pairs") == "8"
    assert numbers(INTERVAL, cell("ablation", "penalty − none", "MEPS", "DPU ↓"))[0] < 0


@pytest.mark.parametrize(
    ("key", "name", "said"),
    [
        ("ablatio", "MEPS", "no table of results ablatio"),
        ("ablation", "MEP", r"the table ablation has no cell .*MEP"),
    ],
)
def test_what_is_not_there_is_one_line(key: str, name: str, said: str) -> None:
    with pytest.raises(FairAllError, match=said):
        cell(key, "cut − drawn", name, "pairs")


def test_a_cell_of_another_kind_is_one_line() -> None:
    with pytest.raises(FairAllError, match="'refused' is not a cell as in"):
        numbers(INTERVAL, "refused")


def test_a_changed_result_changes_page_and_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = text()
    read = findings.table.__wrapped__
    changed = read("ablation").copy()
    changed.loc[("cut − drawn", "all data sets"), "effective utility ↑"] = "7.7 [7.6, 7.8]"
    monkeypatch.setattr(findings, "table", lambda key: changed if key == "ablation" else table(key))
    assert "7.7 \\[7.6, 7.8\\]" in text()
    assert "7.7 \\[7.6, 7.8\\]" not in before
    assert intervals(findings.draw_parts(), 0)[0] == pytest.approx((7.7, 7.6, 7.8))
