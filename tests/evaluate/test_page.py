"""The verdict, tables and figures of evaluations that are refused, have many groups, or lack intervals."""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from fairall.display.style import STYLE
from fairall.display.table import to_latex, to_markdown
from fairall.errors import FairAllError
from fairall.evaluate.analyses import groups, value
from fairall.evaluate.analysis import flat, text
from fairall.evaluate.estimated.bounds import Limits
from fairall.evaluate.estimated.estimates import Interval
from fairall.evaluate.estimated.fairness import MEASURES
from fairall.evaluate.evaluation import Comparison
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.models import Models
from fairall.evaluate.page import Page
from tests.evaluate.simulated import applicants, judged, log_of

N = 1500
GROUPS = 10
HALF = np.full(N, 0.5)
FEW = np.where(np.arange(N) < 5, 1.0, 0.0)  # accepts too few people for a value


def log(groups: int = GROUPS, **options: Any) -> DecisionLog:
    """A log with groups numbered by size, and recorded propensities."""
    regions = np.sqrt(np.arange(N) * groups**2 // N).astype(int)
    people = applicants(N).assign(region=[f"region {i}" for i in regions], amount=100.0)
    keys = {"sensitive": "region", "propensity": "p", "drop": ["sex"]}
    return log_of(people, **(keys | options))


def page_of(models: Models, *targets: np.ndarray | None) -> Page:
    both = [judged(models, target) for target in targets]
    page = both[0].page if len(both) == 1 else Comparison(*both).page
    page.file = "log.csv"
    return page


@pytest.fixture(scope="module")
def models() -> Models:
    return Models(log(), outcome_model="logistic")


@pytest.fixture(scope="module")
def compared(models: Models) -> Page:
    """Of two policies of one name."""
    rising = np.linspace(0.1, 0.9, N)
    return page_of(models, rising, 1.0 - rising)


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    with mpl.rc_context(STYLE):
        yield


def test_policies_of_one_name_are_told_apart(compared: Page) -> None:
    names = ["A: policy", "B: policy", "B − A"]
    assert [*compared.evaluations, "B − A"] == names
    assert list(compared.tables["value"].frame.index.unique(0)) == names
    assert all(f"{name}: " in line for line in compared.verdict for name in names)
    assert ", P = " in compared.verdict[0]


@pytest.mark.parametrize(
    ("record", "shown", "in_words"),
    [
        (Interval(0.1, 0.05, 0.2), "10.0 [5.0, 20.0]", "10.0 [5.0, 20.0]"),
        (Interval(0.1, 0.05, 0.2, probability=1.0), *["10.0 [5.0, 20.0], P = 99.9 %"] * 2),
        (Interval(0.1, np.nan, np.nan, "few", np.nan), "10.0 [*1]", "10.0 without interval"),
        (Interval(np.nan, np.nan, np.nan, "few"), "[*1]", "not known"),
        (Limits(0.1, 0.2, 0.0, 0.3), "[0.0, 30.0]", "[0.0, 30.0]"),
        (7, "7", "7"),
        (7.04, "7", "7"),
    ],
)
def test_values_as_the_page_has_them(record: Any, shown: str, in_words: str) -> None:
    reasons: dict[str, int] = {}
    assert (text(record, reasons), text(record)) == (shown, in_words)
    assert reasons == ({"few": 1} if "*" in shown else {})


def test_limits_as_the_files_have_them() -> None:
    limits = {"bound_low": 0.1, "bound_high": 0.2, "estimate": None, "low": 0.0, "high": 0.3}
    assert flat({"policy": "new", "value": Limits(0.1, 0.2, 0.0, 0.3)}) == {"policy": "new"} | limits


def test_every_measure_and_group_has_a_row(compared: Page) -> None:
    assert len(compared.tables["fairness"].frame) == 3 * len(MEASURES)
    names = compared.tables["groups"].frame.index.get_level_values(1)
    assert list(names) == 2 * [f"region {i}" for i in range(GROUPS)]
    for table in compared.tables.values():
        assert len(table.records) > 0
        assert to_latex(table).isascii()
    assert "[*1]" not in to_markdown(compared.tables["value"])  # a star is escaped
    titles = {axes.get_title() for axes in groups.draw(compared).axes if axes.get_title()}
    assert titles == {f"region {i}" for i in range(GROUPS - groups.MOST_GROUPS, GROUPS)}


def test_an_estimate_without_an_interval_never_looks_as_if_it_had_one() -> None:
    page = page_of(Models(log(propensity=None, groups=2)), np.linspace(0.2, 0.8, N))
    table = page.tables["value"]
    lines = table.frame.loc[""]["utility"]
    assert lines["doubly robust"].endswith("]")
    assert [lines[name][-5:] for name in ("IPS", "direct method")] == [" [*1]", " [*1]"]
    assert table.note.count("[*1] it rests on ") == 1
    (points,) = value.draw(page).axes[0].collections
    assert set(np.array(points.get_facecolor())[:, 3]) == {0.0, 1.0}, "some are hollow"


def test_a_refused_policy_has_bounds_only(models: Models, capsys: pytest.CaptureFixture[str]) -> None:
    page = page_of(models, FEW)
    utility, _, trust = page.verdict
    assert utility == "Utility per 100 people: not known"
    assert trust == f"Trust: {str(page.failure).replace(':', ',', 1)}"
    known = page.tables["value"].frame.loc[""]["utility"].str.contains(",")
    assert known.to_dict() == {name: name == "no assumption" for name in known.index}
    page.print()
    assert capsys.readouterr().out.startswith(f"Evaluation of policy on log.csv\n{utility}\n")
    assert value.draw(page).axes
    both = page_of(models, FEW, HALF).verdict
    assert both[0].startswith("Utility per 100 people: A: policy: not known; B: policy: ")
    assert both[2].startswith(f"Trust: A: policy: refused, {page.refused}; B: policy: right if")


def test_amounts_have_no_cost() -> None:
    page = page_of(
        Models(log(groups=2, gain="amount", loss="amount", cost=None), outcome_model="logistic"), HALF
    )
    assert not any(", cost" in line for line in page.basis())
    note = page.tables["value"].note
    assert "it needs recorded propensities, labels of all accepted people, one cost" in note


@pytest.mark.parametrize(
    ("target", "worth", "alike", "trust"),
    [
        (HALF, "], doubly robust", "0.0 [0.0, ", "right if"),
        (np.zeros(N), ": 0.0 [−0.2, 0.2], doubly robust", "0.0 [0.0, ", "right if"),
        (np.repeat([0.9, 0.2], N // 2), "doubly robust", "70.0 [", "right if"),
        (None, "doubly robust", "", "utility observed, rates by label right if"),
    ],
)
def test_the_verdict_of_one_policy(
    target: np.ndarray | None, worth: str, alike: str, trust: str, models: Models
) -> None:
    verdict = page_of(models, target).verdict
    assert worth in verdict[0]
    assert verdict[1].startswith(f"Groups: gaps in acceptance rate {alike}")
    assert verdict[2].startswith(f"Trust: {trust} the log holds everything that decided")


def test_one_group_is_not_compared() -> None:
    models = Models(log(groups=2), outcome_model="logistic", smallest_cell=1200)
    groups = page_of(models, HALF).verdict[1]
    assert groups == "Groups: not compared, fewer than two groups have 1200 people"


def test_a_page_begins_with_the_verdict_and_the_gaps(models: Models, tmp_path: Path) -> None:
    shown = page_of(models, HALF)
    shown.write(tmp_path, "the command")
    page = (tmp_path / "index.html").read_text()
    lines = [*shown.verdict, 'id="figure-gaps"', "<nav>", next(shown.basis()), "<h2"]
    places = [page.index(escape(line) if line[0] not in "<i" else line) for line in lines]
    assert places == sorted(places)
    assert page.count('id="figure-gaps"') == 1
    assert page.count('<div class="scroll" role="region" tabindex="0"') == page.count("<table")
    with pytest.raises(FairAllError, match=r"^cannot write to .*index\.html: .*; choose another place"):
        shown.write(tmp_path / "index.html", "the command")


def test_lines_fit_a_terminal_of_80_columns(
    compared: Page, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    compared.print()
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80
