"""The verdict, tables and figures of evaluations that are refused, have many groups, or lack intervals."""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from fairall.display.style import STYLE
from fairall.display.table import to_latex, to_markdown
from fairall.evaluate.analyses import groups, value
from fairall.evaluate.analysis import chance, flat, text
from fairall.evaluate.estimated.bounds import Limits
from fairall.evaluate.estimated.estimates import Interval
from fairall.evaluate.estimated.fairness import MEASURES
from fairall.evaluate.evaluation import Comparison, Evaluation, Models
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.page import Page

N = 1500
GROUPS = 10
LOG = Path("log.csv")
HALF = np.full(N, 0.5)


def log(propensity: str | None = "p", groups: int = GROUPS, **options: Any) -> DecisionLog:
    """A log with groups numbered by size, and recorded propensities."""
    random = np.random.default_rng(1)
    accepted = random.random(N) < 0.6
    table = {
        "score": random.normal(size=N),
        "region": [f"region {i}" for i in np.sqrt(np.arange(N) * groups**2 // N).astype(int)],
        "granted": accepted.astype(int),
        "p": 0.6,
        "repaid": np.where(accepted, random.random(N) < 0.7, np.nan),
    }
    amounts = dict.fromkeys(options.values(), 100.0)
    keys: dict[str, Any] = {
        "decision": "granted",
        "label": "repaid",
        "sensitive": "region",
        "propensity": propensity,
    }
    return DecisionLog.of(pd.DataFrame(table | amounts), **keys, not_features=["p"], **options)


def shown_of(models: Models, *targets: np.ndarray) -> Page:
    both = [Evaluation(models, "column", target) for target in targets]
    page = both[0].page if len(both) == 1 else Comparison(*both).page
    page.file = LOG
    return page


@pytest.fixture(scope="module")
def models() -> Models:
    return Models(log(), outcome_model="logistic")


@pytest.fixture(scope="module")
def compared(models: Models) -> Page:
    """Of two policies of one name."""
    rising = np.linspace(0.1, 0.9, N)
    return shown_of(models, rising, 1.0 - rising)


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    with mpl.rc_context(STYLE):
        yield


def test_policies_of_one_name_are_told_apart(compared: Page) -> None:
    assert list(compared.evaluations) == ["A: column", "B: column"]
    frame, records = compared.tables["value"].frame, compared.records("value")
    assert list(dict.fromkeys(frame.index.get_level_values(0))) == ["A: column", "B: column", "B − A"]
    assert frame.iloc[-1, -1].endswith(chance(records["probability"].iloc[-1]))


def test_values_as_the_page_and_the_files_have_them() -> None:
    reasons: dict[str, int] = {}
    known, lacking = Interval(0.1, 0.05, 0.2), Interval(0.1, np.nan, np.nan, "few")
    values: list[Any] = [
        known,
        known._replace(probability=0.99999),
        lacking,
        lacking._replace(estimate=np.nan),
    ]
    values += [Limits(0.1, 0.2, 0.0, 0.3), Limits(0.1, 0.2, np.nan, np.nan, "few")]
    assert [text(one, reasons) for one in (*values, 7, "word")] == [
        *("10.0 [5.0, 20.0]", "10.0 [5.0, 20.0], P > 99.9 %", "10.0 [*1]", "[*2]"),
        *("[0.0, 30.0]", "[*1]", "7", "word"),
    ]
    assert list(reasons) == ["no interval: few", "no estimate: few"]
    assert [chance(one) for one in (0.0, 0.5, np.nan, None)] == ["P < 0.1 %", "P = 50.0 %", "", ""]
    limits = {"bound_low": 0.1, "bound_high": 0.2, "estimate": None, "low": 0.0, "high": 0.3}
    assert flat({"policy": "new", "value": values[4]}) == {"policy": "new"} | limits


def test_every_measure_and_group_has_a_row(compared: Page) -> None:
    found = compared.tables
    assert len(found["fairness"].frame) == 3 * len(MEASURES)
    names = found["groups"].frame.index.get_level_values(1)
    assert list(names) == 2 * [f"region {i}" for i in range(GROUPS)]
    for table in found.values():
        assert len(table.records) > 0
        assert to_latex(table).isascii()
    assert "[*1]" not in to_markdown(found["value"])  # a star is escaped
    titles = {axes.get_title() for axes in groups.draw(compared).axes if axes.get_title()}
    assert titles == {f"region {i}" for i in range(GROUPS - groups.MOST_GROUPS, GROUPS)}


def test_an_estimate_without_an_interval_never_looks_as_if_it_had_one() -> None:
    shown = shown_of(Models(log(propensity=None, groups=2)), np.linspace(0.2, 0.8, N))
    table = shown.tables["value"]
    lines = table.frame.loc[""]["utility"]
    assert lines["doubly robust"].endswith("]")
    assert [lines[name][-5:] for name in ("IPS", "self-normalised IPS", "direct method")] == [
        *(" [*1]", " [*1]", " [*2]"),
    ]
    assert table.note.count("[*1] no interval: the propensities are modelled by") == 1
    gaps = shown.tables["fairness"].frame.iloc[1]
    assert gaps["IPS"].endswith(" [*1]")
    assert "[*1]" not in gaps["DR"]
    (points,) = value.draw(shown).axes[0].collections
    assert set(np.array(points.get_facecolor())[:, 3]) == {0.0, 1.0}, "some are hollow"


def test_a_refused_policy_has_bounds_only(models: Models, capsys: pytest.CaptureFixture[str]) -> None:
    shown = shown_of(models, np.where(np.arange(N) < 5, 1.0, 0.0))
    refused = shown.found.refused
    assert refused is not None
    utility, _, trust = shown.verdict
    assert (utility, trust) == ("Utility: not known", f"Trust: refused, {refused}")
    table = shown.records("value").set_index("estimator")
    assert table["estimate"].isna().all()
    assert table["low"].notna().to_dict() == {name: name == "no assumption" for name in table.index}
    shown.print()
    assert capsys.readouterr().out.startswith(f"Evaluation of column on log.csv\n{utility}\n")
    assert value.draw(shown).axes


def test_amounts_have_no_cost() -> None:
    amounts = log(groups=2, gain="earned", loss="lost")
    shown = shown_of(Models(amounts, outcome_model="logistic"), HALF)
    assert any("gain and loss of each row" in line for line in shown.basis())


def test_the_verdict_of_one_policy(models: Models) -> None:
    by_group = np.where(models.log.group % 2 == 0, 0.9, 0.2)
    same = "gaps in acceptance rate 0.0 [0.0, "
    for target, worth, alike in (
        (HALF, "] per 100 people, doubly robust", same),
        (np.zeros(N), "Utility: 0.0 [−0.2, 0.2] per 100 people", same),
        (by_group, "doubly robust", "gaps in acceptance rate 70.0 ["),
    ):
        utility, of_groups, trust = shown_of(models, target).verdict
        assert worth in utility
        assert of_groups.startswith(f"Groups: {alike}")
        assert ("may be 0" in of_groups.split(";")[0]) == (target is not by_group)
        assert trust.startswith("Trust: right if the log holds everything that decided")
    past = Evaluation(models, "the logged decisions", models.log.accepted.astype(float), logged=True)
    assert past.page.verdict[2].startswith("Trust: utility observed, rates by label right if")
    one_group = Models(log(groups=2), outcome_model="logistic", smallest_cell=1200)
    alike = shown_of(one_group, HALF).verdict[1]
    assert alike == "Groups: not compared, fewer than two groups have 1200 people"


def test_an_interval_that_is_shown_to_begin_at_0_may_be_0(models: Models) -> None:
    shown = shown_of(models, HALF)
    assert isinstance(shown.found, Evaluation)
    shown.found.fairness["dpu"]["dr"] = Interval(0.02, 0.0004, 0.04)
    assert shown.verdict[1].startswith("Groups: gaps in acceptance rate 2.0 [0.0, 4.0], may be 0;")


def test_the_verdict_of_two_policies(models: Models, compared: Page) -> None:
    assert len(compared.verdict) == 3
    names = ("A: column", "B: column", "B − A")
    assert all(f"{name}: " in line for line in compared.verdict for name in names)
    assert ", P = " in compared.verdict[0]
    both = shown_of(models, np.where(np.arange(N) < 5, 1.0, 0.0), HALF)
    utility, _, trust = both.verdict
    assert utility.startswith("Utility: A: column: not known; B: column: ")
    assert utility.endswith("B − A: not known")
    assert trust.startswith(f"Trust: A: column: refused, {both.first.refused}; B: column: right if")
    assert trust.count(str(both.first.refused)) == 1


def test_a_page_begins_with_the_verdict_and_the_gaps(models: Models, tmp_path: Path) -> None:
    shown = shown_of(models, HALF)
    shown.write(tmp_path, "the command")
    page = (tmp_path / "index.html").read_text()
    lines = [*shown.verdict, 'id="figure-gaps"', "<nav>", next(shown.basis()), "<h2"]
    places = [page.index(escape(line) if line[0] not in "<i" else line) for line in lines]
    assert places == sorted(places)
    assert page.count('id="figure-gaps"') == 1
    assert page.count('<div class="scroll" role="region" tabindex="0"') == page.count("<table")


def test_lines_fit_a_terminal_of_80_columns(
    compared: Page, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    compared.print()
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
