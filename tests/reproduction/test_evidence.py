"""Evaluations of policies beside a known truth, and the page of them."""

import re
import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from pytest_regressions.file_regression import FileRegressionFixture

from reproduction import evidence, evidence_page, simulations
from reproduction.__main__ import main
from reproduction.evidence import CASES, COLUMNS, judged, log_of, summary
from reproduction.evidence_logs import linear, made, truth_of
from reproduction.pages import read_table

pytestmark = pytest.mark.whole

FILE = "evaluations_{}.csv"


def some(*names: str, rows: int = 500, share: Any = 0.1) -> pd.DataFrame:
    """A case of each of some names."""
    found = [CASES[CASES["name"] == name].iloc[:1] for name in names]
    return pd.concat(found, ignore_index=True).assign(rows=rows, share=share)


@pytest.fixture
def cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that can tell, one that cannot, and one with a score; truths of small populations."""
    names = "✓ π recorded", "✗ 1 − π recorded", "selected by another score"
    few = some(*names, share=[0.1, 0.1, 0.001])
    for module in (evidence, evidence_page):
        monkeypatch.setattr(module, "CASES", few)
    monkeypatch.setattr(evidence, "POPULATION", 100_000)
    evidence.truth.cache_clear()


def test_the_truth_of_people() -> None:
    people = pd.DataFrame({"s": [*"aabb"], "chance": [0.5, 1, 0.2, 0.8], "first": [1.0, 0, 1, 1]})
    truth = truth_of(people.assign(propensity=0.5, second=0.5), cost=0.4)
    expected = {"value": 0.3 / 4, "dpu": 0.5, "TPR of group a": 0.5 / 1.5, "predictive_parity": 0}
    expected |= {"equal_opportunity": 1 - 0.5 / 1.5, "false_positive": 0, "difference: dpu": -0.5}
    expected["difference: value"] = (0.05 + 0.3 - 0.1 + 0.2) / 4 - 0.3 / 4
    assert {name: truth[name] for name in expected} == pytest.approx(expected)


def test_labels_of_rejected_people_count_by_the_decisions() -> None:
    people = linear(2_000, np.random.default_rng(0))
    expected = np.mean(people["first"] * (people["propensity"] * people["chance"] - 0.5))
    assert truth_of(people.assign(rejected=0.0))["value"] == pytest.approx(expected)


@pytest.mark.parametrize("name", CASES.loc[~CASES["setting"].str.startswith("Basic"), "name"].unique())
def test_a_case_draws_what_its_log_says(name: str) -> None:
    (case,) = some(name, rows=1_000).itertuples()
    log, again = (log_of(case, np.random.default_rng(0)) for _ in range(2))
    pd.testing.assert_frame_equal(log, again)
    assert (len(log), "propensity" in log) == (1_000, case.propensities == "recorded")
    assert log["label"][log["decision"] == 0].isna().all()
    truth = truth_of(made(case.draw, 20_000, np.random.default_rng(1)), case.cost)
    assert np.isfinite(truth).all()


@pytest.mark.usefixtures("cases")
def test_an_interrupted_study_goes_on_and_its_estimates_reproduce_the_truth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of another revision is left alone."""
    monkeypatch.setattr(simulations, "simulations", lambda *_: True)
    folder, texts = tmp_path / "made", [""]
    words = ["evidence", "-o", str(folder), "--logs"]
    for logs in (20, 100):
        assert main([*words, str(logs)]) == 0
        (file,) = folder.glob(FILE.format("*"))
        texts.append(file.read_text())
        assert texts[-1].startswith(texts[-2])
    found = simulations.found(file, COLUMNS)
    assert found.groupby("case")["replicate"].unique().map(list).to_list() == [[*range(10)]] * 2 + [[0]]
    right, wrong = (summary(found[found["case"] == case]).set_index("estimator") for case in (0, 1))
    sure = right.loc[["dr", "sndr", "ips", "snips"]]
    assert (sure["error"].abs() < 4 * sure["error_se"]).all()
    assert sure["covered"].min() >= 0.8
    assert (sure[["answered", "refused", "logs"]] == [1, 0, 10]).all(axis=None)
    assert np.isnan(right.loc["dm", "covered"])
    assert (wrong["refused"] == 1).all()
    file.rename(folder / FILE.format("another"))
    assert main([*words, "20"]) == 0
    assert file.read_text() == texts[1]
    assert main(["evidence", "-o", str(tmp_path), "--hours", "0"]) == 1
    said = f"reproduction: {tmp_path}: nothing has been evaluated yet\n"
    assert capsys.readouterr().err.endswith(said)


@pytest.mark.usefixtures("cases")
def test_the_page_leads_with_what_covers_too_rarely(
    tmp_path: Path, file_regression: FileRegressionFixture
) -> None:
    """Half of the intervals of the log that can tell have the truth; a score's are as they should be."""
    shutil.copy(Path(__file__).with_suffix("") / "evaluations.csv", tmp_path / FILE.format("made_up"))
    page = tmp_path / "evidence.md"
    keys = ("counts", "low", "coverage", "refusals", "scores", "tables/low")
    page.write_text("".join(f"<!-- begin: {key} -->\n<!-- end: {key} -->\n" for key in keys))
    evidence_page.write_pages(tmp_path, [page])
    file_regression.check(re.sub(r"\*Made .*\*\n", "", page.read_text()), extension=".md")


def test_the_studies_of_evaluations_are_made_after_the_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, pages, studies = Mock(), Mock(), Mock()
    monkeypatch.setattr(evidence, "make", logs)
    monkeypatch.setattr(evidence_page, "write_pages", pages)
    monkeypatch.setattr(simulations, "simulations", studies)
    words = ["evidence", "-o", "made", "--hours", "4", "--jobs", "2"]
    into = [tmp_path / "evidence.md", tmp_path / "simulations.md"]
    for page, key in zip(into, ("low", "simulations_swaps"), strict=True):
        page.write_text(f"<!-- begin: {key} -->\n<!-- end: {key} -->\n")
        words += ["--into", str(page)]
    main(words)
    logs.assert_called_once_with(Path("made"), 200, 2, 3.0)
    pages.assert_called_once_with(Path("made"), into[:1])
    _, _, of_studies, jobs, asked, hours = studies.call_args.args
    assert (of_studies, jobs) == (into[1:], 2)
    assert 3.9 < hours <= 4
    assert {"impact", "monitor", "swaps"} <= set(asked)
    assert not {"guard", "drift", "splits"} & set(asked)


@pytest.mark.usefixtures("cases")
def test_a_log_that_cannot_be_read_counts_as_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    few = some("1 % negatives, recorded", "1 % negatives, recorded", rows=30)  # without a negative label
    monkeypatch.setattr(evidence, "CASES", few.assign(options=[{}, {"person": "nobody"}]))
    assert any("estimate" in row for row in judged(0, 0))
    (row,) = judged(1, 0)
    assert row.keys() == {"quantity", "estimator", "truth"}


def test_what_the_page_of_scorecards_says_of_their_intervals() -> None:
    """Doubly robust intervals cover in 92 to 98 % of logs; those of the accepted the less the more rows."""
    table = read_table("scores").filter(like="rows")
    covered = table.apply(lambda column: column.str.extract(r"([\d.]+) %", expand=False)).astype(float)
    alone = covered.filter(like="accepted alone", axis=0)
    bounds = covered.filter(like="bounds", axis=0)
    robust = covered.drop([*alone.index, *bounds.index]).dropna()
    assert robust.shape == (15, 3)
    assert robust.stack().between(92, 98).all()
    assert bounds.stack().min() == 100
    gini = alone.loc[("selected by the score itself", "Gini, accepted alone")]
    assert gini["1,000 rows"] < 90 > 50 > gini["10,000 rows"]
