"""Texts, tables and figures of evaluations that are refused, have many groups, or lack intervals."""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from fairall.display.style import STYLE
from fairall.display.table import PageTable, to_latex, to_markdown
from fairall.evaluate.comparison import Comparison
from fairall.evaluate.estimated.fairness import MEASURES
from fairall.evaluate.estimated.gaps import Interval
from fairall.evaluate.evaluation import Evaluation, Models
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.shown import figures
from fairall.evaluate.shown.sentences import Shown, doubts, share, told, verdict
from fairall.evaluate.shown.tables import Lines, tables
from fairall.evaluate.shown.write import show, write

N = 1500
GROUPS = 10
LOG = Path("log.csv")


def log(propensity: str | None = "p", groups: int = GROUPS, **options: Any) -> DecisionLog:
    """A log with groups numbered by size, and recorded propensities."""
    random = np.random.default_rng(1)
    score = random.normal(size=N)
    accepted = random.random(N) < 0.6
    sizes = np.arange(1, groups + 1) / (groups * (groups + 1) / 2)
    table = pd.DataFrame(
        {
            "score": score,
            "region": random.choice([f"region {i}" for i in range(groups)], N, p=sizes),
            "granted": accepted.astype(int),
            "p": 0.6,
            "earned": 100.0,
            "lost": 40.0,
            "repaid": np.where(accepted, random.random(N) < 0.7, np.nan),
        }
    )
    return DecisionLog.of(
        table.drop(columns=[name for name in ("earned", "lost") if name not in options.values()]),
        decision="granted",
        label="repaid",
        sensitive="region",
        propensity=propensity,
        drop=[] if propensity else ["p"],
        **options,
    )


def table_of(shown: Shown, key: str) -> PageTable:
    return next(table for table in tables(shown) if table.key == key)


@pytest.fixture(scope="module")
def models() -> Models:
    return Models(log(), outcome_model="logistic")


@pytest.fixture(scope="module")
def compared(models: Models) -> Shown:
    """Of two policies of one name."""
    rising = np.linspace(0.1, 0.9, N)
    both = (Evaluation(models, "column", target) for target in (rising, 1.0 - rising))
    return Shown(Comparison(*both), LOG)


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    with mpl.rc_context(STYLE):
        yield


def test_policies_of_one_name_are_told_apart(compared: Shown) -> None:
    assert list(compared.evaluations) == ["A: column", "B: column"]
    frame = table_of(compared, "value").frame
    assert list(dict.fromkeys(frame.index.get_level_values(0))) == ["A: column", "B: column", "B − A"]
    better = compared.content["difference"]["value"]["dm"]["probability_better"]
    assert frame.iloc[-1, -1] == f"{100 * better:.1f} %"


def test_a_probability_is_never_shown_as_certain() -> None:
    assert [share(one) for one in (0.99999, 0.0, 0.5, np.nan, None)] == [
        "> 99.9 %",
        "< 0.1 %",
        "50.0 %",
        "",
        "",
    ]


def test_every_measure_and_group_has_a_row(compared: Shown) -> None:
    found = {table.key: table for table in tables(compared)}
    assert (
        list(found)
        == """
        value fairness groups adverse_impact calibration balance disagreement thresholds costs
    """.split()
    )
    assert len(found["fairness"].frame) == 3 * len(MEASURES) + 2  # two ratios of acceptance
    names = found["groups"].frame.index.get_level_values(1)
    assert list(names) == 2 * [f"region {i}" for i in range(GROUPS)]
    assert list(found["adverse_impact"].frame.index.get_level_values(1)) == list(names)
    for table in found.values():
        assert len(table.records) > 0
        assert to_latex(table).isascii()
    assert "[*1]" not in to_markdown(found["value"])  # a star is escaped


def test_figures_show_the_largest_groups(compared: Shown) -> None:
    for draw in (figures.draw_overlap, figures.draw_reliability):
        titles = [axes.get_title() for axes in draw(compared.evaluations).axes if axes.get_title()]
        assert len(titles) == figures.MOST_GROUPS
        assert not {"region 0", "region 1"} & set(titles)


def test_an_estimate_without_an_interval_never_looks_as_if_it_had_one() -> None:
    models = Models(log(propensity=None, groups=2))
    shown = Shown(Evaluation(models, "half", np.linspace(0.2, 0.8, N)), LOG)
    table = table_of(shown, "value")
    rows = table.frame.loc[""]
    assert rows.loc["doubly robust", "interval"].startswith("[")
    assert rows.loc["IPS", "estimate"] != ""
    assert rows.loc["IPS", "interval"] == rows.loc["self-normalised IPS", "interval"] == "[*1]"
    assert rows.loc["direct method", "interval"] == "[*2]"
    assert table.note.count("[*1] no interval: the propensities are modelled by") == 1
    assert "guaranteed interval" not in rows.index
    gaps = table_of(shown, "fairness").frame.iloc[1]
    assert gaps["IPS"].endswith(" [*1]")
    assert gaps["DR"].endswith("]")
    assert "[*1]" not in gaps["DR"]
    points = {line.get_markerfacecolor() for line in figures.draw_value(shown.evaluations).axes[0].lines[:12]}
    assert "none" in points


def test_reasons_are_numbered_and_told_once() -> None:
    lines = Lines()
    marks = [
        lines.both(Interval(estimate, np.nan, np.nan, why))
        for estimate, why in ((0.1, "a"), (0.2, "a"), (np.nan, "a"), (np.nan, "b"))
    ]
    assert marks == ["10.0 [*1]", "20.0 [*1]", "[*2]", "[*3]"]
    assert lines.table("key", "", "", "A note.", []).note == (
        "A note. [*1] no interval: a. [*2] no estimate: a. [*3] no estimate: b."
    )


def test_the_verdict_tells_a_disagreement() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=4000)
    propensity = 1 / (1 + np.exp(-2 * x))
    accepted = random.random(4000) < propensity
    people = pd.DataFrame(
        {
            "x": x,
            "sex": random.choice(["f", "m"], 4000),
            "granted": accepted.astype(int),
            "p": propensity,
            "repaid": np.where(accepted, random.random(4000) < np.where(abs(x) < 0.5, 0.9, 0.3), np.nan),
        }
    )
    past = DecisionLog.of(people, decision="granted", label="repaid", sensitive="sex", propensity="p")
    half = np.where(abs(x) < 0.5, 0.9, 0.05)
    shown = Shown(Evaluation(Models(past, outcome_model="logistic"), "half", half), LOG)
    first, _, trust = verdict(shown)
    own = shown.content["value"]["dr"]
    assert first.startswith(f"Utility: {100 * own['estimate']:.1f} per 100 people, 95 % interval [")
    assert "doubly robust" in first
    assert trust.startswith(f"Trust: {shown.content['warnings'][0]}; right if")
    assert "direct method and doubly robust differ" in trust
    assert not [line for line in doubts(shown) if "doubly robust differ" in line]


def test_a_refused_policy_has_bounds_only(models: Models, capsys: pytest.CaptureFixture[str]) -> None:
    target = np.zeros(N)
    target[:5] = 1.0
    shown = Shown(Evaluation(models, "few", target), LOG)
    assert shown.refused is not None
    assert list(table_of(shown, "value").frame.loc[""].index) == ["no assumption"]
    utility, _, trust = verdict(shown)
    assert (utility, trust) == ("Utility: not known", f"Trust: refused, {shown.refused}")
    show(shown)
    text = capsys.readouterr().out
    assert text.startswith(f"Evaluation of few on log.csv\n{utility}\n")
    assert "hidden feature" not in text
    assert figures.draw_value(shown.evaluations).axes
    assert "costs" not in {table.key for table in tables(shown)}


def test_amounts_have_no_cost() -> None:
    amounts = log(groups=2, gain="earned", loss="lost")
    shown = Shown(Evaluation(Models(amounts, outcome_model="logistic"), "all", np.full(N, 0.5)), LOG)
    assert any("gain and loss of each row" in line for line in told(shown))
    assert "gains gain or costs loss" in table_of(shown, "value").note
    assert "costs" not in {table.key for table in tables(shown)}


@pytest.mark.parametrize("gamma", [1.01, 9.0])
def test_trust_compares_with_a_hidden_feature(
    gamma: float, models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairall.evaluate.estimated.bounds.greatest_benchmark", lambda *_: ("score", gamma))
    shown = Shown(Evaluation(models, "half", np.full(N, 0.5)), LOG)
    trust = verdict(shown)[2]
    point = shown.content["sensitivity"]["turning_points"]["utility"]
    assert 1.01 < point < 9
    may = "could" if gamma > point else "could not"
    assert f"matters as score does (Γ = {gamma:.2f}) {may} change the sign of the utility" in trust
    assert f"the utility (up to Γ = {point:.2f})" in trust


def test_the_verdict_of_one_policy(models: Models) -> None:
    by_group = np.where(models.log.group % 2 == 0, 0.9, 0.2)
    same = "no difference shown by gaps in acceptance rate 0.0 [0.0, "
    for target, worth, alike in (
        (np.full(N, 0.5), " per 100 people, 95 % interval [", same),
        (np.zeros(N), "Utility: 0.0 per 100 people, 95 % interval [−0.2, 0.2], which contains 0", same),
        (by_group, "doubly robust", "not treated alike, by gaps in acceptance rate 70.0 ["),
    ):
        utility, groups, trust = verdict(Shown(Evaluation(models, "column", target), LOG))
        assert worth in utility
        assert groups.startswith(f"Groups: {alike}")
        assert trust.startswith("Trust: right if the log holds everything that decided")
    past = Evaluation(models, "the logged decisions", models.log.accepted.astype(float), logged=True)
    assert verdict(Shown(past, LOG))[2].startswith("Trust: utility observed, rates by label right if")
    one_group = Models(log(groups=2), outcome_model="logistic", smallest_cell=N // 2)
    groups = verdict(Shown(Evaluation(one_group, "half", np.full(N, 0.5)), LOG))[1]
    assert groups == f"Groups: not compared, fewer than two groups have {N // 2} people"


def test_an_interval_that_is_shown_to_begin_at_0_tells_no_difference(models: Models) -> None:
    shown = Shown(evaluation := Evaluation(models, "half", np.full(N, 0.5)), LOG)
    small = Interval(0.02, 0.0004, 0.04)
    evaluation.fairness["dpu"]["dr"] = small
    assert verdict(shown)[1].startswith(
        "Groups: no difference shown by gaps in acceptance rate 2.0 [0.0, 4.0]"
    )


def test_the_verdict_of_two_policies(models: Models, compared: Shown) -> None:
    lines = verdict(compared)
    assert len(lines) == 3
    assert all(f"{name}: " in line for line in lines for name in ("A: column", "B: column", "B − A"))
    assert "P(B better): " in lines[0]
    few = np.zeros(N)
    few[:5] = 1.0
    both = Comparison(Evaluation(models, "few", few), Evaluation(models, "half", np.full(N, 0.5)))
    utility, _, trust = verdict(Shown(both, LOG))
    assert utility.startswith("Utility: A: few: not known; B: half: ")
    assert utility.endswith("B − A: not known")
    assert trust.startswith(f"Trust: A: few: refused, {both.first.refused}; B: half: right if")
    assert trust.count(str(both.first.refused)) == 1


def test_a_page_begins_with_the_verdict_and_the_gaps(models: Models, tmp_path: Path) -> None:
    shown = Shown(Evaluation(models, "half", np.full(N, 0.5)), LOG)
    write(shown, tmp_path, "the command")
    page = (tmp_path / "index.html").read_text()
    lines = [*verdict(shown), 'id="figure-gaps"', "<nav>", next(told(shown)), "<h2"]
    places = [page.index(escape(line) if line[0] not in "<i" else line) for line in lines]
    assert places == sorted(places)
    assert page.count('id="figure-gaps"') == 1
    assert page.count('<div class="scroll" role="region" tabindex="0"') == page.count("<table")


def test_lines_fit_a_terminal_of_80_columns(
    compared: Shown, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    show(compared)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
