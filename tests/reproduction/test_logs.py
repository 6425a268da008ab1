"""Logs as a benchmark: their truth, and scores of estimators whose quality is known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairall import FairAllError
from reproduction.logs import ANSWERS, DECISIONS, TARGETS, log_of, read_answers, scores, truth_of, write_log
from tests.made_up import made_up

pytestmark = pytest.mark.whole

NAME = "fico-harsh-fairlog-abc-0"


def applicants(n: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Features and groups of n people, P(y = 1), and labels."""
    draw = np.random.default_rng(seed)
    score = draw.normal(size=n)
    people = pd.DataFrame({"seed": 0, "time_step": np.arange(n) // 50 + 1, "score": score})
    chance = 1 / (1 + np.exp(-score))
    return people.assign(sex=draw.choice(["f", "m"], n)), chance, (draw.random(n) < chance).astype(float)


def decided(folder: Path, propensity: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """A run's decisions.csv with given propensities, written to a folder."""
    people, _, label = applicants(len(propensity), seed)
    accepted = np.random.default_rng(1).random(len(people)) < propensity
    people["propensity"], people["decision"] = propensity, accepted.astype(int)
    people["label"] = np.where(accepted, label, np.nan)
    folder.mkdir(exist_ok=True)
    people.to_csv(folder / DECISIONS, index=False)
    return pd.read_csv(folder / DECISIONS)


def test_our_answers_are_near_the_truth_of_a_written_log(tmp_path: Path) -> None:
    n = 3000
    _, chance, label = applicants(n)
    run = replace(made_up("dataset=fico"), path=tmp_path / "run")
    targets = np.ones(n), (chance > 0.5).astype(float), (chance > 0.6).astype(float)
    own = decided(run.path, 0.1 + 0.8 * chance)
    of_targets = {name: decided(tmp_path / name, own) for name, own in zip(TARGETS, targets, strict=True)}
    write_log(tmp_path, NAME, run, own, 0, of_targets)
    log = pd.read_parquet(tmp_path / "logs" / f"{NAME}.parquet")
    assert log["label"].isna().equals(log["decision"] == 0)  # what the log withholds
    truth = pd.read_csv(tmp_path / "truth" / f"{NAME}.csv")
    assert truth["can_tell"].all()
    value = truth.set_index(["target", "quantity"])["truth"]
    for name, target in zip(TARGETS, targets, strict=True):
        assert value[name, "value"] == pytest.approx((target * (label - run.config.cost.value)).mean())
    found = scores(truth, pd.read_csv(tmp_path / "answers" / f"{NAME}.csv")).set_index(
        ["quantity", "estimator"]
    )
    assert found.loc[("value", "dr"), "error"] < 0.03
    assert found.loc[("value", "dr"), "wrongly_refused"] == 0
    assert found.loc[("equal_opportunity", "dr"), "error"] < 0.1


def test_other_applicants_are_refused(tmp_path: Path) -> None:
    run = replace(made_up("dataset=fico"), path=tmp_path)
    own = decided(tmp_path, np.full(100, 0.5))
    other = decided(tmp_path / "other", np.ones(100), seed=1)
    with pytest.raises(FairAllError, match="other applicants than those of model=accept_all"):
        log_of(run, own, 0, dict.fromkeys(TARGETS, other))


def test_people_whom_nobody_could_accept_cannot_be_told() -> None:
    """Person 2 is rejected for certain at one time and accepted at another; person 3 never has a chance."""
    log = pd.DataFrame(
        {
            "time_step": [1, 1, 2, 2],
            "score": [1, 2, 2, 3],
            "sex": ["f", "m", "m", "f"],
            "propensity": [1.0, 0.0, 0.5, 0.0],
            "decision": [1, 0, 1, 0],
            "label": [1, np.nan, 0, np.nan],
            "target_accept_all": 1.0,
            "target_oracle": [1.0, 1.0, 1.0, 0.0],
            "target_oracle_fair": [0.0, 0.0, 0.0, 1.0],
        }
    )
    truth = truth_of(log, np.array([1.0, 1.0, 0.0, 1.0]), 0.5).set_index(["target", "quantity"])
    assert truth["unsupported"].to_dict() == {
        ("accept_all", "value"): 0.25,
        ("oracle", "value"): 0.0,
        ("oracle", "equal_opportunity"): 0.25,
        ("oracle_fair", "value"): 1.0,
        ("oracle_fair", "equal_opportunity"): 0.25,
    }
    assert truth.loc[("oracle", "value"), "truth"] == pytest.approx((0.5 + 0.5 - 0.5) / 4)
    assert truth.loc[("oracle", "equal_opportunity"), "truth"] == pytest.approx(0.5)
    assert truth["can_tell"].sum() == 1


def test_scores_count_errors_coverage_and_refusals() -> None:
    keys = {"target": "oracle", "quantity": "value"}
    truth = pd.DataFrame(
        {
            "log": list("abcde"),
            "truth": [0.1, 0.2, 0.3, 0.4, 0.4],
            "can_tell": [True, True, True, False, False],
        }
    ).assign(**keys)
    answers = pd.DataFrame(
        [
            ("a", 0.2, 0.0, 0.3),
            ("b", 0.1, 0.05, 0.15),
            ("c", None, None, None),
            ("d", None, None, None),
            ("e", 0.5, None, None),
        ],
        columns=["log", "estimate", "low", "high"],
    ).assign(estimator="mine", **keys)
    (found,) = scores(truth, answers).to_dict("records")
    assert (found["error"], found["bias"]) == (pytest.approx(0.1), pytest.approx(0.0))
    assert (found["covered"], found["intervals"], found["width"]) == (0.5, 2, pytest.approx(0.2))
    assert (found["wrongly_refused"], found["rightly_refused"]) == (pytest.approx(1 / 3), 0.5)
    (fewer,) = scores(truth, answers[answers["estimate"].notna()]).to_dict("records")
    assert fewer == found  # no row is a refusal


def test_answers_without_a_column_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    pd.DataFrame(columns=ANSWERS[:-1]).to_csv(path)
    with pytest.raises(FairAllError, match="no column high; needed are log, target"):
        read_answers(path)
    with pytest.raises(FairAllError, match="cannot be read as CSV"):
        read_answers(tmp_path / "none.csv")
