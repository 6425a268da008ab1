"""Logs as a benchmark: their truth, and scores of estimators whose quality is known."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from pytest_regressions.dataframe_regression import DataFrameRegressionFixture
from pytest_regressions.file_regression import FileRegressionFixture
from scipy.special import expit

from reproduction import logs
from reproduction.__main__ import main
from reproduction.logs import ANSWERS, DECISIONS, score_table, truth_of
from reproduction.plan import LOGS, plan
from tests.made_up import made_up

pytestmark = pytest.mark.whole

FOLDER = Path(__file__).with_suffix("")
N = 3000
SCORE = np.random.default_rng(0).normal(size=N)
CHANCE = expit(SCORE)
LABEL = (np.random.default_rng(1).random(N) < CHANCE).astype(float)
POLICIES = {"accept_all": 1.0, "oracle": 1.0 * (CHANCE > 0.5), "oracle_fair": 1.0 * (CHANCE > 0.6)}
MODELS = POLICIES | {"fairlog": 0.1 + 0.8 * CHANCE}
WORDS = ["dataset=fico", "initial_policy=harsh", "seeds=1", f"model={','.join(MODELS)}"]


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of the targets and of FairLog, each in the folder of its model."""
    monkeypatch.chdir(tmp_path)
    results = [replace(made_up(*one.words), path=Path(one.model)) for one in plan(LOGS, WORDS)]
    people = pd.DataFrame({"seed": 0, "time_step": np.arange(N) // 50 + 1, "score": SCORE})
    people["sex"] = np.where(np.arange(N) % 3, "f", "m")
    for model, propensity in MODELS.items():
        accepted = np.random.default_rng(2).random(N) < propensity
        own = people.assign(propensity=propensity, decision=1 * accepted, label=LABEL)
        Path(model).mkdir()
        own.assign(label=own["label"].where(accepted)).to_csv(Path(model, DECISIONS), index=False)
    monkeypatch.setattr(logs, "make", lambda *_, **__: [])
    monkeypatch.setattr(logs, "load_results", lambda _: SimpleNamespace(results=results))


def test_our_answers_are_near_the_truth_and_others_are_scored_beside_them(
    file_regression: FileRegressionFixture,
) -> None:
    Path("page.md").write_text("<!-- begin: logs -->\n<!-- end: logs -->\n")
    words = ["logs", *WORDS, "-o", "bundle"]
    assert main(words) == 0
    (log,), (truth,), (path,) = (Path("bundle", kind).iterdir() for kind in ("logs", "truth", "answers"))
    shown, told, own = pd.read_parquet(log), pd.read_csv(truth), pd.read_csv(path)
    assert shown["label"].isna().equals(shown["decision"] == 0)  # what the log withholds
    expected = [(policy * (LABEL - 0.5)).mean() for policy in POLICIES.values()]
    assert told["truth"][told["quantity"] == "value"].to_list() == pytest.approx(expected)
    # What is there is kept; a file of answers is scored too.
    own[own["estimator"].isin(["dr", "naive"])].to_csv(path, index=False)
    own[own["estimator"] == "snips"].assign(estimate=0.9).to_csv("mine.csv", index=False)
    assert main([*words, "--answers", "mine.csv", "--into", "page.md"]) == 0
    file_regression.check(Path("page.md").read_text().split("*Made")[0], extension=".md")
    assert ", ".join(ANSWERS) in Path("bundle/README.md").read_text()


def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    people = Path("accept_all", DECISIONS)
    people.write_text(people.read_text().replace(",f,", ",m,", 1))
    assert main(["logs", *WORDS]) == 1
    Path("mine.csv").write_text(",".join(ANSWERS[:-1]))
    assert main(["logs", "--answers", "mine.csv"]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first == "reproduction: fairlog: other applicants than those of model=accept_all; make both anew"
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
