"""Logs as a benchmark: their truth, and scores of estimators whose quality is known."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from pytest_regressions.dataframe_regression import DataFrameRegressionFixture
from pytest_regressions.file_regression import FileRegressionFixture

from reproduction import logs
from reproduction.__main__ import main
from reproduction.logs import ANSWERS, DECISIONS, TARGETS, score_table, truth_of
from reproduction.plan import LOGS, plan
from tests.made_up import made_up

pytestmark = pytest.mark.whole

FOLDER = Path(__file__).with_suffix("")
WORDS = ["dataset=fico", "initial_policy=harsh", "seeds=1"]
N = 3000
SCORE = np.random.default_rng(0).normal(size=N)
CHANCE = 1 / (1 + np.exp(-SCORE))
LABEL = (np.random.default_rng(1).random(N) < CHANCE).astype(float)
POLICIES = {"accept_all": np.ones(N), "oracle": 1.0 * (CHANCE > 0.5), "oracle_fair": 1.0 * (CHANCE > 0.6)}


def decide(path: Path, propensity: np.ndarray, score: np.ndarray = SCORE) -> None:
    """Write a run's decisions.csv with given propensities."""
    accepted = np.random.default_rng(2).random(N) < propensity
    people = pd.DataFrame({"seed": 0, "time_step": np.arange(N) // 50 + 1, "score": score})
    people = people.assign(sex=np.where(np.arange(N) % 3, "f", "m"), propensity=propensity)
    people = people.assign(decision=accepted.astype(int), label=np.where(accepted, LABEL, np.nan))
    path.mkdir(parents=True, exist_ok=True)
    people.to_csv(path / DECISIONS, index=False)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Path]:
    """Folders of runs of the targets and of FairLog, by model."""
    monkeypatch.chdir(tmp_path)
    planned = plan(LOGS, [*WORDS, f"model={','.join(TARGETS)},fairlog"])
    results = [replace(made_up(*one.words), path=tmp_path / one.model) for one in planned]
    for model, propensity in {**POLICIES, "fairlog": 0.1 + 0.8 * CHANCE}.items():
        decide(tmp_path / model, propensity)
    monkeypatch.setattr(logs, "make", lambda *_, **__: [])
    monkeypatch.setattr(logs, "load_results", lambda _: SimpleNamespace(results=results))
    return {model: tmp_path / model for model in (*TARGETS, "fairlog")}


def test_our_answers_are_near_the_truth_and_others_are_scored_beside_them(
    runs: Mapping[str, Path], file_regression: FileRegressionFixture
) -> None:
    Path("page.md").write_text("<!-- begin: logs -->\n<!-- end: logs -->\n")
    words = ["logs", *WORDS, f"model={','.join(runs)}", "-o", "bundle"]
    assert main(words) == 0
    (log,), (truth,) = (
        [read(path) for path in Path("bundle", kind).iterdir()]
        for kind, read in (("logs", pd.read_parquet), ("truth", pd.read_csv))
    )
    assert log["label"].isna().equals(log["decision"] == 0)  # what the log withholds
    expected = [(policy * (LABEL - 0.5)).mean() for policy in POLICIES.values()]
    assert truth["truth"][truth["quantity"] == "value"].to_list() == pytest.approx(expected)
    # What is there is kept; a file of answers is scored too.
    (path,) = Path("bundle/answers").iterdir()
    own = pd.read_csv(path)
    own[own["estimator"].isin(["dr", "naive"])].to_csv(path, index=False)
    own[own["estimator"] == "snips"].assign(estimate=0.9).to_csv("mine.csv", index=False)
    assert main([*words, "--answers", "mine.csv", "--into", "page.md"]) == 0
    file_regression.check(Path("page.md").read_text().split("*Made")[0], extension=".md")
    assert ", ".join(ANSWERS) in Path("bundle/README.md").read_text()


def test_mistakes_are_one_line(runs: Mapping[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    decide(runs["accept_all"], np.ones(N), SCORE[::-1])
    assert main(["logs", *WORDS, f"model={','.join(runs)}"]) == 1
    Path("mine.csv").write_text(",".join(ANSWERS[:-1]))
    assert main(["logs", "--answers", "mine.csv"]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("fairlog: other applicants than those of model=accept_all; make both anew")
    assert second.startswith("reproduction: --answers mine.csv: ")
    assert second.endswith("['high']")


def test_truth_and_scores_by_hand(dataframe_regression: DataFrameRegressionFixture) -> None:
    """Person 2 is rejected for certain at one time and accepted at another; person 3 never has a chance.

    Of three questions that can be told one is refused, of two others one; no row is a refusal too.
    """
    log, truth, answers = (pd.read_csv(FOLDER / f"{name}.csv") for name in ("log", "truth", "answers"))
    dataframe_regression.check(
        truth_of(log.drop(columns="everybody"), log["everybody"], 0.5), basename="truth_of_log"
    )
    every, told = (score_table(truth, {"a": of}, []) for of in (answers, answers.dropna(subset="estimate")))
    pd.testing.assert_frame_equal(every.frame, told.frame)
    dataframe_regression.check(every.frame.reset_index(), basename="scores_of_answers")
