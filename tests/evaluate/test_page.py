"""The verdict, tables and figures of evaluations that are refused, have many groups, or lack intervals."""

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from pytest_regressions.file_regression import FileRegressionFixture

from fairall.display.style import STYLE
from fairall.display.table import to_markdown
from fairall.errors import FairAllError
from fairall.evaluate.analyses import groups, value
from fairall.evaluate.analysis import flat, text
from fairall.evaluate.estimated.bounds import Limits
from fairall.evaluate.estimated.estimates import Interval
from fairall.evaluate.evaluation import Comparison
from fairall.evaluate.models import Models
from fairall.evaluate.page import Page
from tests.evaluate.simulated import LOGISTIC, applicants, judged, log_of

N = 1500
HALF = np.full(N, 0.5)
FEW = np.where(np.arange(N) < 5, 1.0, 0.0)  # accepts too few people for a value


def models_of(number: int = 3, *, smallest_cell: int = 10, score: Any = None, **options: Any) -> Models:
    """Of a log with groups numbered by size, and recorded propensities."""
    regions = np.sqrt(np.arange(N) * number**2 // N).astype(int)
    people = applicants(N).assign(
        region=[f"region {i}" for i in regions],
        amount=100.0,
        row=range(N),
        half=np.arange(N) * 2 // N,
        officer=np.where(np.arange(N) % 2, "Ann", "Bob"),
    )
    unused = ["sex", "amount", "row", "half", "officer"]
    keys = {"sensitive": "region", "propensity": "p", "drop": [*{*unused} - {*options.values()}]}
    log = log_of(people, **(keys | options))
    return Models(log, **LOGISTIC, smallest_cell=smallest_cell, score=score)


def page_of(models: Models, *targets: np.ndarray | None) -> Page:
    both = [judged(models, target) for target in targets]
    page = both[0].page if len(both) == 1 else Comparison(*both).page
    page.file = "log.csv"
    return page


@pytest.fixture(scope="module")
def models() -> Models:
    return models_of()


@pytest.fixture(scope="module")
def compared() -> Page:
    """Of two policies of one name, with all that a log can have."""
    rising = np.linspace(0.1, 0.9, N)
    known: dict[str, Any] = {"time": "row", "policy_version": "half", "decision_maker": "officer"}
    return page_of(models_of(score=rising, **known), rising, 1.0 - rising)


@pytest.fixture(autouse=True)
def _style() -> Iterator[None]:
    with mpl.rc_context(STYLE):
        yield


def test_a_comparison_has_these_lines_and_tables(
    compared: Page, file_regression: FileRegressionFixture
) -> None:
    """Without its numbers, which other tests have."""
    lines = [compared.title, *compared.verdict, *compared.basis()]
    page = "\n\n".join([*lines, *map(to_markdown, compared.tables.values())])
    file_regression.check(re.sub(r"(?<!region )−?\d+(\.\d+)?", "#", page), extension=".md")


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


def test_the_largest_groups_are_drawn() -> None:
    axes = groups.draw(page_of(models_of(10), HALF)).axes
    assert {one.get_title() for one in axes} - {""} == {
        f"region {i}" for i in range(10 - groups.MOST_GROUPS, 10)
    }


def test_an_estimate_without_an_interval_never_looks_as_if_it_had_one() -> None:
    page = page_of(Models(models_of(2, propensity=None).log), np.linspace(0.2, 0.8, N))
    table = page.tables["value"]
    lines = table.frame.loc[""]["utility"]
    assert lines["doubly robust"].endswith("]")
    assert [lines[name][-5:] for name in ("IPS", "direct method")] == [" [*1]", " [*1]"]
    assert table.note.count("[*1] it rests on ") == 1
    (points,) = value.draw(page).axes[0].collections
    assert set(np.array(points.get_facecolor())[:, 3]) == {0.0, 1.0}, "some are hollow"


def test_verdicts(models: Models, file_regression: FileRegressionFixture) -> None:
    pages = {
        "half of everybody": page_of(models, HALF),
        "nobody": page_of(models, np.zeros(N)),
        "one region more than the others": page_of(models, np.repeat([0.9, 0.2], [400, 1100])),
        "the decisions taken": page_of(models, None),
        "too few people for a value": page_of(models, FEW),
        "too few, and half of everybody": page_of(models, FEW, HALF),
        "one group": page_of(models_of(2, smallest_cell=1100), HALF),
    }
    lines = [line for name, page in pages.items() for line in (f"## {name}", *page.verdict)]
    file_regression.check("\n".join(lines), extension=".md")


def test_a_refused_policy_has_bounds_only(models: Models, capsys: pytest.CaptureFixture[str]) -> None:
    page = page_of(models, FEW)
    known = page.tables["value"].frame.loc[""]["utility"].str.contains(",")
    assert known.to_dict() == {name: name == "no assumption" for name in known.index}
    page.print()
    start = "Evaluation of policy on log.csv\nUtility per 100 people: not known\n"
    assert capsys.readouterr().out.startswith(start)
    assert str(page.failure) == f"refused: {page.refused}"
    assert value.draw(page).axes


def test_amounts_have_no_cost() -> None:
    page = page_of(models_of(gain="amount", loss="amount", cost=None), HALF)
    assert not any(", cost" in line for line in page.basis())
    note = page.tables["value"].note
    assert "it needs recorded propensities, labels of all accepted people, one cost" in note


def test_a_page_begins_with_the_verdict_and_the_gaps(
    models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairall.display.page.DPI", 40)
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
