"""The page docs/findings.md: its text and figures are those of the tables of results in docs/."""

from __future__ import annotations

import re

import numpy as np
import pytest
from pytest_regressions.file_regression import FileRegressionFixture

from reproduction import findings
from reproduction.findings import COVERAGE, FIGURES, INTERVAL, MEAN, numbers, text
from reproduction.pages import BLOCK, DOCS, read_table

EMPTY = r"<!-- begin: \1 -->\n<!-- end: \1 -->"


def test_the_page_is_what_its_command_writes() -> None:
    page = (DOCS / "findings.md").read_text()
    assert BLOCK.sub(EMPTY, page) == text(), "make findings"
    assert [key for key, content in BLOCK.findall(page) if content] == [one.key for one in FIGURES]
    assert all((DOCS / "figures" / f"{one.key}.png").is_file() for one in FIGURES)
    assert 1500 <= len(text().split()) <= 2600


def test_figures_show_the_tables_of_docs(file_regression: FileRegressionFixture) -> None:
    lines = [one.title for one in FIGURES]
    for axes in [axes for one in FIGURES if one.draw for axes in one.draw().axes]:
        lines.append("; ".join(label.get_text() for label in (axes.title, *axes.get_yticklabels())))
        drawn = [line.get_xydata() for line in axes.get_lines()]
        drawn += [part for bars in axes.collections for part in bars.get_segments()]
        lines += [np.array_str(np.asarray(points).T, 999, 4) for points in drawn]
    file_regression.check("\n".join(lines))


def test_drawn_decisions_are_not_fairer_everywhere() -> None:
    ends = numbers(INTERVAL, "ablation", "DPU ↓").loc["cut − drawn"].drop("all data sets")
    assert {*ends.index[ends[1] > 0]} == {"COMPAS", "MEPS", "Law school", "FICO scores"}
    assert {*ends.index[ends[2] < 0]} == {"Adult", "Synthetic"}
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


def test_claims_of_no_worse_have_means_on_the_other_side() -> None:
    means = (
        numbers(MEAN, "temporal_splits_harsh", "mean DPU ↓")[0]
        .unstack()
        .loc[["COMPAS", "German Credit", "MEPS"]]
    )
    ours, theirs = means["FairAll (I+II)"], means["FairLog"]
    claims = read_table("claims_splits_real_harsh").droplevel("group")
    (shown,) = claims.filter(like="deployed, its unfairness is no greater", axis=0).to_numpy().tolist()
    assert shown == ["reproduced"] * 3
    assert [*(ours > theirs)] == [True, False, True]


def test_more_data_make_some_intervals_miss_more_often() -> None:
    many = numbers(COVERAGE, "scores", "10,000 rows")[0].filter(like="accepted alone").dropna()
    assert many[many >= 90].between(93, 95.5, "left").all()
    assert "so in 6 of 15 kinds of simulated audits" in text()


def test_the_first_tool_of_each_world_is_as_the_headline_says() -> None:
    first = read_table("questions_truth_first").droplevel("group").iloc[:, 0].str.partition(",")[0].to_dict()
    biased = {first.pop(f"truth gap 0, label bias {bias}") for bias in ("0.5", "1")}
    assert biased == {"latent", "equal rates"}
    assert first.pop("truth gap 0.2, label bias 1") == "latent"
    assert {*first.values()} <= {"no fairness term", "equal opportunity"}


def test_a_changed_result_changes_page_and_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = read_table("ablation").copy()
    changed.loc[("cut − drawn", "all data sets"), "effective utility ↑"] = "7.7 [7.6, 7.8]"
    monkeypatch.setattr(findings, "read_table", lambda key: changed if key == "ablation" else read_table(key))
    assert "7.7 \\[7.6, 7.8\\]" in text()
    (figure,) = (one.draw() for one in FIGURES if one.key == "findings_parts" and one.draw)
    assert figure.axes[0].get_lines()[0].get_xydata()[0].tolist() == [7.7, 0]
