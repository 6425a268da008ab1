"""Texts, tables and figures of evaluations that are refused, have many groups, or lack intervals."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from fairall.evaluate import figures
from fairall.evaluate.comparison import Comparison
from fairall.evaluate.evaluation import Evaluation, Models
from fairall.evaluate.fairness import MEASURES
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.shown import Shown, doubts, told
from fairall.evaluate.tables import (
    Lines,
    balance_table,
    calibration_table,
    costs_table,
    fairness_table,
    groups_table,
    thresholds_table,
    value_table,
)
from fairall.evaluate.write import show
from fairall.results.page import BASE
from fairall.results.table import latex, markdown

N = 1500
GROUPS = 10
LOG = Path("log.csv")


def log(propensity: str | None = "p", groups: int = GROUPS, **options: Any) -> DecisionLog:
    """A log with groups numbered by size, and recorded propensities."""
    random = np.random.default_rng(1)
    score = random.normal(size=N)
    accepted = random.random(N) < 0.6
    sizes = np.arange(1, groups + 1) / (groups * (groups + 1) / 2)
    table = pd.DataFrame({
        "score": score, "region": random.choice([f"region {i}" for i in range(groups)], N, p=sizes),
        "granted": accepted.astype(int), "p": 0.6, "earned": 100.0, "lost": 40.0,
        "repaid": np.where(accepted, random.random(N) < 0.7, np.nan),
    })  # fmt: skip
    return DecisionLog.of(
        table.drop(columns=[name for name in ("earned", "lost") if name not in options.values()]),
        decision="granted", label="repaid", sensitive="region", propensity=propensity,
        drop=[] if propensity else ["p"], **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def models() -> Models:
    return Models(log(), outcome_model="logistic")


@pytest.fixture(scope="module")
def compared(models: Models) -> Shown:
    """Of two policies of one name."""
    rising = np.linspace(0.1, 0.9, N)
    both = (Evaluation(models, "column", target) for target in (rising, 1.0 - rising))
    return Shown.of(Comparison(*both), LOG)


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    with mpl.rc_context(BASE):
        yield


def test_policies_of_one_name_are_told_apart(compared: Shown) -> None:
    assert list(compared.plains) == ["A: column", "B: column"]
    assert {row.group for row in value_table(compared).rows} == {"A: column", "B: column", "B − A"}
    last = value_table(compared).rows[-1]
    better = compared.content["difference"]["value"]["dm"]["probability_better"]
    assert last.cells[-1].ours == f"{100 * better:.1f} %"


def test_a_probability_is_never_shown_as_certain(compared: Shown) -> None:
    value = {"dr": {"estimate": 0.1, "low": 0.0, "high": 0.2, "probability_better": 0.99999}}
    shown = replace(compared, difference={**(compared.difference or {}), "value": value})
    assert value_table(shown).rows[-1].cells[-1].ours == "> 99.9 %"


def test_numbers_for_mlflow_are_finite(compared: Shown) -> None:
    metrics = compared.metrics()
    assert len(metrics) < 1000  # of one batch
    assert np.isfinite(list(metrics.values())).all()
    assert {name.split(".")[0] for name in metrics} == {"first", "second", "difference"}


def test_every_measure_and_group_has_a_row(compared: Shown) -> None:
    assert len(fairness_table(compared).rows) == 3 * len(MEASURES) + 2  # two ratios of acceptance
    assert [row.name for row in groups_table(compared).rows] == 2 * [f"region {i}" for i in range(GROUPS)]
    tables = (
        value_table, fairness_table, groups_table, thresholds_table, costs_table, calibration_table,
        balance_table,
    )  # fmt: skip
    for table in (made(compared) for made in tables):
        assert table.records
        assert {len(row.cells) for row in table.rows} == {len(table.columns)}
        assert latex(table).isascii()


def test_figures_show_the_largest_groups(compared: Shown) -> None:
    drawn = figures.draw_overlap(compared.evaluations), figures.draw_reliability(compared.plains)
    for figure in drawn:
        titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
        assert len(titles) == figures.MOST_GROUPS
        assert not {"region 0", "region 1"} & set(titles)


def test_an_estimate_without_an_interval_never_looks_as_if_it_had_one() -> None:
    models = Models(log(propensity=None, groups=2))
    shown = Shown.of(Evaluation(models, "half", np.linspace(0.2, 0.8, N)), LOG)
    rows = {row.name: [cell.ours for cell in row.cells] for row in value_table(shown).rows}
    assert rows["doubly robust"][1].startswith("[")
    assert rows["IPS"][0] != ""
    assert rows["IPS"][1] == rows["self-normalised IPS"][1] == "[*1]"
    assert rows["direct method"][1] == "[*2]"
    note = value_table(shown).note
    assert note.count("[*1] no interval: the propensities are modelled by") == 1
    assert "guaranteed interval" not in rows
    cells = fairness_table(shown).rows[1].cells
    assert cells[1].ours.endswith(" [*1]")
    assert cells[2].ours.endswith("]")
    assert "[*1]" not in cells[2].ours
    points = {line.get_markerfacecolor() for line in figures.draw_value(shown.plains).axes[0].lines[:8]}
    assert "none" in points


def test_reasons_are_numbered_and_told_once() -> None:
    lines = Lines()
    marks = [
        lines.both({"estimate": estimate, "low": None, "high": None, "why": why})
        for estimate, why in ((0.1, "a"), (0.2, "a"), (None, "a"), (None, "b"))
    ]
    assert marks == ["10.0 [*1]", "20.0 [*1]", "[*2]", "[*3]"]
    assert lines.table("key", "", "A note.", []).note == (
        "A note. [*1] no interval: a. [*2] no estimate: a. [*3] no estimate: b."
    )


def test_the_first_line_is_the_result_and_the_second_a_disagreement() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=4000)
    propensity = 1 / (1 + np.exp(-2 * x))
    accepted = random.random(4000) < propensity
    people = pd.DataFrame({
        "x": x, "sex": random.choice(["f", "m"], 4000), "granted": accepted.astype(int), "p": propensity,
        "repaid": np.where(accepted, random.random(4000) < np.where(abs(x) < 0.5, 0.9, 0.3), np.nan),
    })  # fmt: skip
    past = DecisionLog.of(people, decision="granted", label="repaid", sensitive="sex", propensity="p")
    half = np.where(abs(x) < 0.5, 0.9, 0.05)
    shown = Shown.of(Evaluation(Models(past, outcome_model="logistic"), "half", half), LOG)
    first, second, *_ = told(shown)
    own = shown.content["value"]["dr"]
    assert first.startswith(f"Utility: {100 * own['estimate']:.1f} per 100 people, 95 % interval [")
    assert "doubly robust" in first
    assert second == f"Warning: {shown.content['warnings'][0]}"
    assert "direct method and doubly robust differ" in second
    assert second not in list(doubts(shown))


def test_a_refused_policy_has_bounds_only(models: Models, capsys: pytest.CaptureFixture[str]) -> None:
    target = np.zeros(N)
    target[:5] = 1.0
    shown = Shown.of(Evaluation(models, "few", target), LOG)
    assert shown.refused is not None
    assert [row.name for row in value_table(shown).rows] == ["no assumption"]
    assert next(told(shown)) == f"Refused: {shown.refused}"
    show(shown)
    text = capsys.readouterr().out
    assert "Evaluation of few on log.csv" in text
    assert "Sensitivity" not in text
    assert figures.draw_value(shown.plains).axes
    assert not costs_table(shown).records


def test_amounts_have_no_cost() -> None:
    amounts = log(groups=2, gain="earned", loss="lost")
    shown = Shown.of(Evaluation(Models(amounts, outcome_model="logistic"), "all", np.full(N, 0.5)), LOG)
    assert any("gain and loss of each row" in line for line in told(shown))
    assert "gains gain or costs loss" in value_table(shown).note
    assert not costs_table(shown).records


def test_the_sensitivity_line_compares_with_a_feature(models: Models) -> None:
    shown = Shown.of(Evaluation(models, "half", np.full(N, 0.5)), LOG)
    (line,) = (line for line in told(shown) if line.startswith("Sensitivity"))
    point = shown.content["sensitivity"]["turning_points"]["utility"]
    assert "the sign of the utility is certain" in line
    assert ("up to 10" if point is None else f"{point:.2f}") in line
    assert "hiding the feature that matters most, score, would make Γ = " in line


def test_intervals_are_not_wrapped_on_a_narrow_terminal(
    compared: Shown, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    show(compared)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    tables = lines[lines.index("Unfairness ×100") :]
    assert not [line for line in tables if line.endswith(",") and "[" in line and "  " in line]


def test_many_texts_stay_markdown(compared: Shown) -> None:
    assert "[*1]" not in markdown(value_table(compared))  # a star is escaped
