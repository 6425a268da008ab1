"""Evaluations of policies beside a known truth, and the page of them."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from pytest_regressions.file_regression import FileRegressionFixture

from reproduction import evidence, evidence_page, simulations
from reproduction.__main__ import main
from reproduction.evidence import CASES, FILE, judged, log_of, summary
from reproduction.evidence_logs import made, truth_of
from reproduction.fingerprint import SIMULATED
from reproduction.pages import read_table

pytestmark = pytest.mark.whole

FEW = "✓ π recorded", "✗ 1 − π recorded"


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has cases of some names evaluated, perhaps with other columns; truths are of small populations."""

    def put(*names: str, **columns: object) -> None:
        cases = CASES.drop_duplicates("name").set_index("name", drop=False).loc[[*names]]
        cases = cases.reset_index(drop=True).assign(share=0.1, **columns)
        for module in (evidence, evidence_page):
            monkeypatch.setattr(module, "CASES", cases)

    monkeypatch.setattr(evidence, "POPULATION", 100_000)
    evidence.truth.cache_clear()
    return put


def test_the_truth_of_people() -> None:
    """Labels of rejected people count by the probability of the decision."""
    people = pd.DataFrame({"s": [*"aabb"], "first": [1.0, 0, 1, 1], "second": 0.5, "propensity": 0.5})
    truth = truth_of(people.assign(chance=[1, 1, 0.4, 0.8], rejected=[0, 1, 0, 0.8]), cost=0.4)
    expected = {"value": 0.3 / 4, "dpu": 0.5, "TPR of group a": 0.5 / 1.5, "predictive_parity": 0}
    expected |= {"equal_opportunity": 1 - 0.5 / 1.5, "false_positive": 0, "difference: dpu": -0.5}
    expected["difference: value"] = (0.05 + 0.3 - 0.1 + 0.2) / 4 - 0.3 / 4
    assert {name: truth[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("name", CASES.loc[~CASES["setting"].str.startswith("Basic"), "name"].unique())
def test_a_case_draws_what_its_log_says(name: str) -> None:
    case = CASES[CASES["name"] == name].iloc[0]
    log = log_of(case, np.random.default_rng(0))
    assert (len(log), "propensity" in log) == (case.rows, case.propensities == "recorded")
    assert log["label"].isna()[log["decision"] == 0].all()
    truth = truth_of(made(case.draw, 20_000, np.random.default_rng(1)), case.cost)
    assert np.isfinite(truth).all()


def test_studies_follow_logs_whose_estimates_reproduce_the_truth(
    use: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    use(*FEW)
    studies = Mock()
    monkeypatch.setattr(simulations, "simulations", studies)
    monkeypatch.chdir(tmp_path)
    for page, key in ("of_logs", "counts"), ("of_studies", "simulations_swaps"):
        Path(page).write_text(f"<!-- begin: {key} -->\n<!-- end: {key} -->\n")
    words = "evidence --hours 4 -o made --into of_logs --into of_studies --logs 100"
    assert main(words.split()) == 0
    assert "|  | logs | 20 |" in Path("of_logs").read_text()
    *_, into, _, asked, hours = studies.call_args.args
    assert (into, 3.5 < hours <= 4) == ([Path("of_studies")], True)
    assert {"impact", "monitor", "swaps"} <= {*asked} <= {*SIMULATED} - {"guard", "drift", "splits"}
    told = summary(simulations.found(Path("made", FILE)), "case", ["case", "estimator"])
    sure, wrong = told.loc[0].loc[["dr", "sndr", "ips", "snips"]], told.loc[1]
    assert (sure["error"].abs() < 4 * sure["error_se"]).all()
    assert sure["covered"].min() >= 0.8
    assert (sure[["answered", "refused", "logs"]] == [1, 0, 10]).all(axis=None)
    assert np.isnan(told.at[(0, "dm"), "covered"])
    assert (wrong["refused"] == 1).all()
    assert main(["evidence", "-o", "empty", "--hours", "0"]) == 1
    assert capsys.readouterr().err.endswith("reproduction: empty: nothing has been evaluated yet\n")


def test_the_page_leads_with_what_covers_too_rarely(
    use: Callable[..., None], tmp_path: Path, file_regression: FileRegressionFixture
) -> None:
    """Half of the intervals of the log that can tell have the truth; a score's are as they should be."""
    use(*FEW, "selected by another score")
    shutil.copy(Path(__file__).with_suffix("") / "evaluations.csv", tmp_path / FILE)
    page = tmp_path / "evidence.md"
    keys = ("counts", "low", "coverage", "refusals", "scores", "tables/low")
    page.write_text("".join(f"<!-- begin: {key} -->\n<!-- end: {key} -->\n" for key in keys))
    evidence_page.write_pages(tmp_path, [page])
    file_regression.check(re.sub(r"\*Made .*\*\n", "", page.read_text()), extension=".md")


def test_a_log_that_cannot_be_read_counts_as_refused(use: Callable[..., None]) -> None:
    # Few people are without a negative label.
    use(*["1 % negatives, recorded"] * 2, rows=30, options=[{}, {"person": "nobody"}])
    assert judged(0, 0)["estimate"].notna().any()
    assert judged(1, 0)[["estimate", "low"]].isna().all(axis=None)


def test_what_the_page_of_scorecards_says_of_their_intervals() -> None:
    """Doubly robust intervals cover in 92 to 98 % of logs; those of the accepted the less the more rows."""
    shown = read_table("scores").filter(like="rows").stack()
    covered = shown.str.extract(r"([\d.]+) %", expand=False).astype(float).dropna()
    alone, bounds = (covered.filter(like=kind) for kind in ("accepted alone", "bounds"))
    robust = covered.drop([*alone.index, *bounds.index])
    assert len(robust) == 55
    assert robust.between(92, 98).all()
    assert bounds.min() == 100
    gini = alone.unstack().loc[("selected by the score itself", "Gini, accepted alone")]
    assert gini["1,000 rows"] < 90 > 50 > gini["10,000 rows"]
