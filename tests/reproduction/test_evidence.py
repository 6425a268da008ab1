"""Evaluations of policies beside a known truth, and the page of them."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairall import FairAllError
from reproduction import evidence, evidence_page, simulations
from reproduction.__main__ import main
from reproduction.evidence import COLUMNS, Evidence, judged, summary
from reproduction.evidence_logs import CASES, linear, truth_of
from reproduction.evidence_page import counts_table, low_table, results, setting_table, write_pages

pytestmark = pytest.mark.whole

PLACES = {f"{case.setting}/{case.name}": place for place, case in enumerate(CASES)}
RIGHT, IMPOSSIBLE = PLACES["Refusals/✓ π recorded"], PLACES["Refusals/✗ 1 − π recorded"]
POPULATION = 100_000


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs of 500 rows in small batches, and truths of small populations."""
    monkeypatch.setattr(evidence, "BATCH", 2)
    small = [
        replace(case, sizes=(500,)) if place in (RIGHT, IMPOSSIBLE) else case
        for place, case in enumerate(CASES)
    ]
    for module in (evidence, evidence_page):
        monkeypatch.setattr(module, "CASES", small)


def test_the_truth_of_people() -> None:
    people = pd.DataFrame({"s": [*"aabb"], "chance": [0.5, 1, 0.2, 0.8], "first": [1.0, 0, 1, 1]})
    truth = truth_of(people.assign(propensity=0.5, second=0.5), cost=0.4)
    assert truth["value"] == pytest.approx((0.1 - 0.2 + 0.4) / 4)
    assert truth["dpu"] == pytest.approx(0.5)
    assert truth["TPR of group a"] == pytest.approx(0.5 / 1.5)
    assert truth["equal_opportunity"] == pytest.approx(1 - 0.5 / 1.5)
    assert truth["predictive_parity"] == pytest.approx(0)
    assert truth["false_positive"] == pytest.approx(0)
    assert truth["difference: dpu"] == pytest.approx(-0.5)
    assert truth["difference: value"] == pytest.approx((0.05 + 0.3 - 0.1 + 0.2) / 4 - 0.3 / 4 - 0.0)


def test_labels_of_rejected_people_count_by_the_decisions() -> None:
    people = linear(2_000, np.random.default_rng(0))
    expected = np.mean(people["first"] * (people["propensity"] * people["chance"] - 0.5))
    assert truth_of(people.assign(rejected=0.0))["value"] == pytest.approx(expected)


@pytest.mark.parametrize("place", [p for name, p in PLACES.items() if not name.startswith("Basic")])
def test_a_case_draws_what_its_log_says(place: int) -> None:
    case = CASES[place]
    log = case.log(1_000, np.random.default_rng(0))
    again = case.log(1_000, np.random.default_rng(0))
    pd.testing.assert_frame_equal(log, again)
    assert len(log) == 1_000
    assert ("propensity" in log) == case.recorded
    assert log["label"][log["decision"] == 0].isna().all()
    truth = truth_of(case.draw(20_000, np.random.default_rng(1)), case.cost)
    assert np.isfinite(list(truth.values())).all()


def test_estimates_of_a_right_log_reproduce_the_truth_and_an_impossible_one_is_refused(
    tmp_path: Path,
) -> None:
    study, environment = Evidence(tmp_path, 200, [RIGHT, IMPOSSIBLE]), dict(os.environ)
    study.run(population=POPULATION)
    assert os.environ == environment
    right = summary(study.found(RIGHT, 500)).set_index("estimator")
    assert right.loc["dr", "logs"] == 20
    for name in ("dr", "sndr", "ips", "snips"):
        assert abs(right.loc[name, "error"]) < 4 * right.loc[name, "error_se"]
        assert right.loc[name, "covered"] >= 0.8
        assert right.loc[name, ["answered", "refused"]].tolist() == [1, 0]
    assert np.isnan(right.loc["dm", "covered"])
    wrong = summary(study.found(IMPOSSIBLE, 500)).set_index("estimator")
    assert (wrong["refused"] == 1).all()


def test_an_interrupted_study_goes_on_where_it_was(tmp_path: Path) -> None:
    whole, parts = Evidence(tmp_path / "whole", 60, [RIGHT]), Evidence(tmp_path / "parts", 60, [RIGHT])
    whole.run(population=POPULATION)
    parts.run(population=POPULATION, hours=0)
    assert parts.found(RIGHT, 500).empty
    Evidence(tmp_path / "parts", 20, [RIGHT]).run(population=POPULATION)
    assert parts.found(RIGHT, 500)["log"].unique().tolist() == [0, 1]
    assert [numbers for _, _, numbers in parts.batches()] == [[2, 3], [4, 5]]
    parts.run(population=POPULATION)
    assert not parts.batches()
    pd.testing.assert_frame_equal(parts.found(RIGHT, 500), whole.found(RIGHT, 500))
    assert list(whole.found(RIGHT, 500)) == [*COLUMNS]


def test_a_folder_of_another_revision_is_left_alone(tmp_path: Path) -> None:
    study = Evidence(tmp_path, 20, [RIGHT])
    (tmp_path / "revision.txt").write_text("another")
    with pytest.raises(FairAllError, match="has evaluations by another revision, another"):
        study.run(population=POPULATION)
    study.run(hours=0)
    assert study.found(RIGHT, 500).empty


def test_cases_of_a_large_share_do_not_wait_for_each_other(tmp_path: Path) -> None:
    order = [(place, n) for place, n, _ in Evidence(tmp_path, 40).batches()]
    kinds = [(place, n) for place, case in enumerate(evidence.CASES) for n in case.sizes]
    assert sorted(order[: len(kinds)]) == sorted(kinds)


def test_a_summary_of_given_evaluations() -> None:
    rows = [
        (0, "value", "dr", 0.3, 0.1, 0.5, 0.2, ""),
        (1, "value", "dr", 0.1, 0.0, 0.15, 0.2, ""),
        (2, "value", "dr", 0.2, np.nan, np.nan, 0.2, "no theory"),
        (3, "value", "dr", np.nan, np.nan, np.nan, 0.2, "refused"),
    ]
    (told,) = summary(pd.DataFrame(rows, columns=COLUMNS)).to_dict("records")
    assert told["truth"] == 0.2
    assert told["error"] == pytest.approx(0)
    assert told["error_se"] == pytest.approx(0.1 / np.sqrt(3))
    assert told["covered"] == 0.5
    assert told["covered_se"] == pytest.approx(0.5 / np.sqrt(6))
    assert (told["answered"], told["refused"], told["logs"]) == (0.5, 0.25, 4)


def test_the_page_leads_with_what_covers_too_rarely(tmp_path: Path) -> None:
    study, random = Evidence(tmp_path), np.random.default_rng(0)
    for place, covering in ((RIGHT, 0.5), (IMPOSSIBLE, None)):
        covers = random.random(400) < (covering or 0)
        low = np.where(covers, 0.0, 0.3) if covering else np.full(400, np.nan)
        rows = pd.DataFrame({"log": range(400), "quantity": "value", "estimator": "dr"}).assign(
            estimate=low + 0.2, low=low, high=low + 0.4, truth=0.2, why=None if covering else "refused"
        )
        rows.to_csv(study.file(place, 500), index=False)
    told, by_log = results(study)
    assert set(by_log["name"]) == {CASES[RIGHT].name}
    assert told["wrong"].tolist() == [True, False]
    counts = counts_table(told).records.set_index("count")["value"].astype(str)
    assert [counts.filter(like=f"({mark}").iloc[0] for mark in "✗✓"] == ["100 %", "0 %"]
    (row,) = low_table(told).frame.itertuples()
    assert row[0] == ("Refusals", "✓ π recorded")
    assert row[1:3] == ("500", "value")
    frame = setting_table("Refusals", told).frame
    assert list(frame.loc[("✗ 1 − π recorded", "value")]) == ["20.0", "refused"]
    page = tmp_path / "evidence.md"
    page.write_text("<!-- begin: low -->\n<!-- end: low -->\n")
    write_pages(study, tmp_path / "page", [page])
    assert "| Refusals | ✓ π recorded | 500 | value |" in page.read_text()


def test_nothing_evaluated_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["evidence", "-o", str(tmp_path), "--hours", "0", "--logs", "1"]
    assert main(words) == 1
    assert capsys.readouterr().err == f"reproduction: {tmp_path}: nothing has been evaluated yet\n"


def test_the_studies_of_evaluations_are_made_after_the_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    pages = [tmp_path / "evidence.md", tmp_path / "simulations.md"]
    pages[0].write_text("<!-- begin: low -->\n<!-- end: low -->\n")
    pages[1].write_text("<!-- begin: simulations_swaps -->\n<!-- end: simulations_swaps -->\n")
    monkeypatch.setattr(Evidence, "run", lambda _, jobs, hours: made.append((jobs, hours)))
    monkeypatch.setattr(evidence_page, "write_pages", lambda _, folder, into: made.append(into))
    monkeypatch.setattr(simulations, "simulations", lambda *words: made.append(words))
    words = ["evidence", "-o", str(tmp_path / "made"), "--hours", "4", "--jobs", "2"]
    main([*words, "--into", str(pages[0]), "--into", str(pages[1])])
    logs, of_logs, (_, _, of_studies, jobs, asked, hours) = made
    assert (logs, jobs) == ((2, 3.0), 2)
    assert [of_logs, of_studies] == [pages[:1], pages[1:]]
    assert 3.9 < hours <= 4
    assert {"impact", "monitor", "swaps"} <= set(asked)
    assert not {"guard", "drift", "splits"} & set(asked)


def test_a_log_that_cannot_be_read_counts_as_refused() -> None:
    one = CASES[PLACES["Rare labels/1 % negatives, recorded"]]
    ((quantity, estimator, found),) = judged(replace(one, options={"person": "nobody"}), 30, 0)
    assert (quantity, estimator, found["estimate"]) == ("value", "dr", None)
    assert found["why"].startswith("error: person=nobody: the table has no such column")
    values = [found for _, _, found in judged(one, 30, 0)]  # without a negative label
    assert any(found.get("estimate") is not None for found in values)


def score_coverage(place: int, n: int, logs: int) -> pd.DataFrame:
    """Share of the intervals of a score's measures that cover, by estimator and quantity, and of refusals."""
    true = evidence.truth(place, 500_000)
    rows = [
        (number, quantity, estimator, found.get("estimate"), found["low"], found["high"], true[quantity], "")
        for number in range(logs)
        for quantity, estimator, found in judged(CASES[place], n, number)
    ]
    table = pd.DataFrame(rows, columns=COLUMNS).astype({"low": float, "high": float, "estimate": float})
    return summary(table).set_index(["estimator", "quantity"])


def test_intervals_of_a_score_cover() -> None:
    found = score_coverage(PLACES["Scores/selected by the score itself"], 1000, 60)
    assert found.loc["dr", "covered"].min() >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 60)
    assert found.loc["dr", "refused"].max() <= 0.05
    assert found.loc[("accepted", "score: gini"), "covered"] < 0.9
    assert found.loc[("accepted", "score: gini"), "error"] < -0.04
    assert found.loc["bounds without assumption", "covered"].min() == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("n", [1000, 2000, 10_000])
@pytest.mark.parametrize("by", ["the score itself", "another score", "noise"])
def test_intervals_of_a_score_cover_in_a_thousand_logs(by: str, n: int) -> None:
    found = score_coverage(PLACES[f"Scores/selected by {by}"], n, 1000)
    print(found.to_string())
    assert found.loc["dr", "covered"].between(0.92, 0.98).all()
    assert found.loc["dr", "refused"].max() <= 0.05
