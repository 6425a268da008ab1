"""What a target policy can be, and which are refused."""

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from fairall.decide.load import HERE
from fairall.errors import FairAllError
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.policies import target_probabilities
from fairall.policy import Policy
from tests.evaluate.test_log import applicants, log_of

TARGET = np.linspace(0, 1, 600)


class Saved(Policy):
    """Two seeds."""

    def __init__(self) -> None:
        self.learner = object()  # type: ignore[assignment]

    def propensity(self, people: pd.DataFrame, *, strict: bool = False) -> np.ndarray:
        if "income" not in people:
            raise FairAllError("the column 'income' is needed")
        return np.stack([TARGET, TARGET / 2])


@pytest.fixture(scope="module")
def log() -> DecisionLog:
    people = applicants(target=TARGET, other=np.where(TARGET > 0.3, "granted", "refused"), flags=TARGET > 0.3)
    return log_of(people, not_features=["target", "other", "flags"])


def test_columns(log: DecisionLog) -> None:
    given, name = target_probabilities("target", log)
    assert name == "target"
    np.testing.assert_array_equal(given, TARGET)
    for column in ("other", "flags"):
        np.testing.assert_array_equal(target_probabilities(column, log)[0], TARGET > 0.3)


def test_decisions_are_told_by_the_word_of_the_logs_own(tmp_path: Path) -> None:
    people = applicants(granted=np.where(TARGET > 0.6, "0", "1"), other=np.where(TARGET > 0.3, "0", "1"))
    people.to_csv(tmp_path / "log.csv", index=False)
    words = [
        "decision=granted",
        "accepted='0'",
        "sensitive=sex",
        "drop=[other]",
        "label=repaid",
        "positive=yes",
    ]
    log = DecisionLog.read(tmp_path / "log.csv", words)
    np.testing.assert_array_equal(log.accepted, TARGET > 0.6)
    np.testing.assert_array_equal(target_probabilities("other", log)[0], TARGET > 0.3)


def test_arrays_functions_and_predictors(log: DecisionLog, tmp_path: Path) -> None:
    np.testing.assert_array_equal(target_probabilities(TARGET, log)[0], TARGET)
    assert target_probabilities(pd.Series(TARGET, name="mine"), log)[1] == "mine"
    model = LogisticRegression().fit(log.raw[["income"]], log.accepted)
    expected = model.predict_proba(log.raw[["income"]])[:, 1]
    np.testing.assert_array_equal(target_probabilities(model, log)[0], expected)

    # Numbers in a file, which are text in the log, reach policies as numbers.
    log.raw.to_csv(tmp_path / "log.csv", index=False)
    words = ["decision=granted", "accepted=granted", "sensitive=sex", "drop=[officer,repaid]"]
    read = DecisionLog.read(tmp_path / "log.csv", words)
    given, name = target_probabilities(model, read)
    assert name == "LogisticRegression"
    np.testing.assert_allclose(given, expected)

    def rich(people: pd.DataFrame) -> pd.Series:
        return (people["income"] > 30) * 1.0

    given, name = target_probabilities(rich, read)
    assert name == "rich"
    np.testing.assert_array_equal(given, log.raw["income"] > 30)


def test_saved_policies_are_averaged_over_seeds(log: DecisionLog, tmp_path: Path) -> None:
    np.testing.assert_allclose(target_probabilities(Saved(), log)[0], 0.75 * TARGET)
    folder = tmp_path / "runs" / "fairall" / "loans" / "2a0b" / "policy"
    folder.mkdir(parents=True)
    (folder / "SUMS").touch()
    with mock.patch.object(Policy, "load", return_value=Saved()) as load:
        given, name = target_probabilities(folder, log)
        load.assert_called_with(folder, modules=())
        np.testing.assert_allclose(given, 0.75 * TARGET)
        assert name == "2a0b"
        (folder.parent / "config.yaml").touch()
        with pytest.raises(FairAllError, match="2a0b: unfinished"):
            target_probabilities("2a0", log, config=HERE | {"outputs_dir": str(tmp_path)})
        with mock.patch("fairall.decide.load.read_named", return_value=mock.Mock(path=folder.parent)):
            assert target_probabilities("2a0", log, config=HERE | {"outputs_dir": str(tmp_path)})[1] == "2a0b"
        load.assert_called_with(folder, modules=())
    with mock.patch("fairall.evaluate.policies.find_policy", return_value=(Saved(), "models:/bank/1")):
        given, name = target_probabilities("models:/bank/1", log)
    np.testing.assert_allclose(given, 0.75 * TARGET)
    assert name == "models:/bank/1"


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("targt", "policy targt: neither a column of the log, .*; did you mean the column target?"),
        ("income", "policy income, row 1: .* is no probability"),
        ("town", r"policy town: the column has 3 values \(Hull, Leeds, York\); it must hold probabilities"),
        ("repaid", r"the column has 2 values \(no, yes\) and empty cells"),
        (TARGET[:5], r"policy array gives an array of shape \(5,\); it must be \(600,\)"),
        (TARGET * 2, "policy array, row 301: 1.0016.* is no probability"),
        (lambda people: people["wealth"], "gives no probabilities of this log .*wealth"),
    ],
)
def test_what_is_no_policy(policy: Any, told: str, log: DecisionLog) -> None:
    with pytest.raises(FairAllError, match=told) as caught:
        target_probabilities(policy, log)
    assert "\n" not in str(caught.value)


def test_policies_that_need_columns_the_log_lacks() -> None:
    log = log_of(applicants().drop(columns="income"))
    model = LogisticRegression().fit(applicants()[["income"]], TARGET > 0.5)
    with pytest.raises(FairAllError, match=r"policy LogisticRegression: it needs 1 column \(income\) that"):
        target_probabilities(model, log)
    with pytest.raises(FairAllError, match="policy object: the column 'income' is needed"):
        target_probabilities(Saved(), log)
