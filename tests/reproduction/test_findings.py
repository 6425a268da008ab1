"""The page docs/findings.md: its text and figures are those of the tables of results in docs/."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure
from pytest_regressions.file_regression import FileRegressionFixture

from fairall import FairAllError
from reproduction import findings
from reproduction.findings import FIGURES, INTERVAL, MEAN, cell, matched, text
from reproduction.pages import BLOCK, DOCS, read_table

EMPTY = r"<!-- begin: \1 -->\n<!-- end: \1 -->"


def numbers(key: str, column: str, group: str = "", name: str = "") -> list[float]:
    """The numbers in a cell of a table of docs/, by hand."""
    shown = cell(key, group, name, column).replace("−", "-")
    return [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?", shown)]


def drawn(figure: Figure) -> Iterator[str]:
    """What is drawn in each panel: names of rows, and points of lines, ends of means, and bars."""
    axes: Any
    for axes in figure.axes:
        yield "; ".join(label.get_text() for label in (axes.title, *axes.get_yticklabels()))
        points = [line.get_xydata() for line in axes.get_lines()]
        points += [part for of in axes.collections for part in of.get_segments()]
        points += [bar.get_bbox().get_points() for bar in axes.patches]
        for part in points:
            yield " ".join(f"({x:.4g}, {y:.4g})" for x, y in part)


def test_the_page_is_what_its_command_writes() -> None:
    page = (DOCS / "findings.md").read_text()
    assert BLOCK.sub(EMPTY, page) == text(), "make findings"
    assert [key for key, content in BLOCK.findall(page) if content] == [one.key for one in FIGURES]
    assert all((DOCS / "figures" / f"{one.key}.png").is_file() for one in FIGURES)
    assert 1500 <= len(text().split()) <= 2600


def test_figures_show_the_tables_of_docs(file_regression: FileRegressionFixture) -> None:
    lines = [line for one in FIGURES if one.draw for line in (one.title, *drawn(one.draw()))]
    file_regression.check("\n".join(lines))


def test_drawn_decisions_are_not_fairer_everywhere() -> None:
    less, greater = set(), set()
    for name in read_table("ablation").loc["cut − drawn"].index.drop("all data sets"):
        _, low, high = numbers("ablation", "DPU ↓", "cut − drawn", name)
        less |= {name} if low > 0 else set()
        greater |= {name} if high < 0 else set()
    assert less == {"COMPAS", "MEPS", "Law school", "FICO scores"}
    assert greater == {"Adult", "Synthetic"}
    assert (
        "less on\n  COMPAS, MEPS, law school and FICO, greater by 2.4 on Adult and 1.4 on Synthetic" in text()
    )


def test_no_page_counts_other_claims_than_the_tables() -> None:
    known = {
        findings.reproduced(policy, splits) for policy in ("harsh", "lenient") for splits in (True, False)
    }
    for page in DOCS.rglob("*.md"):
        said = re.findall(r"(\d+) of (?:the )?(?:paper's )?34\b", page.read_text())
        assert {f"{number} of 34" for number in said} <= known, page
    cells = pd.concat([read_table(f"claims_splits_{kind}_harsh").stack() for kind in ("real", "synthetic")])
    weak = cells.index.get_level_values("name").str.contains("no less|no greater")
    better = cells[~weak].str.startswith("reproduced")
    assert f"{better.sum()} of {len(better)} claims that one method is better than another" in text()


def test_claims_of_no_worse_have_means_on_the_other_side() -> None:
    names = ("COMPAS", "German Credit", "MEPS")
    ours, theirs = (
        [numbers("temporal_splits_harsh", "mean DPU ↓", name, method)[0] for name in names]
        for method in ("FairAll (I+II)", "FairLog")
    )
    claims = read_table("claims_splits_real_harsh").droplevel("group")
    (shown,) = claims.filter(like="deployed, its unfairness is no greater", axis=0).to_numpy().tolist()
    assert shown == ["reproduced"] * 3
    assert [one > other for one, other in zip(ours, theirs, strict=True)] == [True, False, True]
    assert f"is {ours[0]} and {theirs[0]} on COMPAS, {ours[2]} and {theirs[2]} on MEPS" in text()


def test_more_data_make_some_intervals_miss_more_often() -> None:
    table = read_table("scores").filter(like="accepted alone", axis=0)
    few, many = (
        table[f"{rows} rows"].str.extract(r"([\d.]+) %", expand=False).astype(float)
        for rows in ("1,000", "10,000")
    )
    rare = many < 90
    assert (many.count(), rare.sum()) == (15, 6)
    assert (few > many)[rare].all()
    assert many[~rare].dropna().between(93, 95.5, "left").all()
    assert "so in 6 of 15 kinds of simulated audits" in text()


def test_the_first_tool_of_each_world_is_as_the_headline_says() -> None:
    table = read_table("questions_truth_first")
    first = table.droplevel("group").iloc[:, 0].str.partition(",")[0].to_dict()
    plain = {"no fairness term", "equal opportunity"}
    assert {first.pop(f"truth gap 0, label bias {bias}") for bias in ("0.5", "1")} == {
        "latent",
        "equal rates",
    }
    assert first.pop("truth gap 0.2, label bias 1") == "latent"
    assert set(first.values()) <= plain


def test_a_table_is_read_from_its_file_or_from_its_block() -> None:
    assert cell("leaderboard_credit", "harsh initial policy", "accept everybody", "DPU ↓") == "0.0"
    assert cell("ablation", "cut − drawn", "MEPS", "pairs") == "8"
    assert matched(MEAN, cell("ablation", "penalty − none", "MEPS", "DPU ↓"))[0].startswith("−")
    for key, name, said in (
        ("ablatio", "MEPS", "no table of results ablatio"),
        ("ablation", "MEP", "the table ablation has no cell .*MEP"),
    ):
        with pytest.raises(FairAllError, match=said):
            cell(key, "cut − drawn", name, "pairs")
    with pytest.raises(FairAllError, match="'refused' is not a cell as in"):
        matched(INTERVAL, "refused")


def test_a_changed_result_changes_page_and_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = read_table("ablation").copy()
    changed.loc[("cut − drawn", "all data sets"), "effective utility ↑"] = "7.7 [7.6, 7.8]"
    monkeypatch.setattr(findings, "read_table", lambda key: changed if key == "ablation" else read_table(key))
    assert "7.7 \\[7.6, 7.8\\]" in text()
    (figure,) = (one.draw() for one in FIGURES if one.key == "findings_parts" and one.draw)
    assert figure.axes[0].get_lines()[0].get_xydata()[0].tolist() == [7.7, 0]
