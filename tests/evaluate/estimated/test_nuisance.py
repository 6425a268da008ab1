"""Nuisance models against populations whose probabilities are known."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from fairall.errors import FairAllError
from fairall.evaluate.estimated import nuisance
from fairall.evaluate.estimated.nuisance import Fitted, fit
from fairall.evaluate.log import DecisionLog
from reproduction.population import COLUMNS
from reproduction.simulated_models import people
from tests.evaluate.simulated import applicants, log_of


def fitted(log: DecisionLog, model: Any = "auto", target: np.ndarray | None = None) -> Fitted:
    target = log.accepted.astype(float) if target is None else target
    result = fit(log, target, "target", model, 5, 0)
    assert result is not None
    return result


@pytest.mark.parametrize("model", ["auto", "logistic"])
def test_models_converge_to_a_logistic_truth(model: str) -> None:
    errors = []
    for n in (500, 8000):
        table = applicants(n)
        log = log_of(table)
        pairs = (None, table["p"]), (log.label, table["chance"])
        # The outcome holds for the rejected too.
        errors.append([np.abs(fitted(log, model, target).probability - p).mean() for target, p in pairs])
    assert np.max(errors[1]) < 0.025
    assert np.mean(errors[1]) < 0.6 * np.mean(errors[0])


@pytest.mark.parametrize("world", [{"shared": "parity of two"}, {"kind": "tails"}])
def test_auto_finds_what_the_logistic_regression_cannot_and_is_calibrated(world: dict[str, Any]) -> None:
    one = people(np.random.default_rng(0), 3000, **world)
    log = DecisionLog.of(one.table, **COLUMNS)
    for target, truth in ((log.accepted.astype(float), one.propensity), (log.label, one.chance)):
        auto, logistic = (fitted(log, model, target) for model in ("auto", "logistic"))
        assert auto.parametric is None
        assert auto.log_loss < logistic.log_loss
        p = auto.probability
        assert np.abs(p - truth).mean() < 0.7 * np.abs(logistic.probability - truth).mean()
        known = pd.DataFrame({"p": p, "error": p - target}).dropna()
        errors = known["error"].groupby(pd.qcut(known["p"], 5, labels=False)).mean()
        assert errors.abs().max() < 0.08


def test_a_given_classifier_is_calibrated() -> None:
    """Naive Bayes counts every copy of a feature as evidence."""
    table = applicants(3000)
    log = log_of(table)
    one = fitted(replace(log, inputs=log.inputs[:, [0, *[1, 2] * 5]]), GaussianNB())
    assert one.name == "GaussianNB"
    assert np.abs(one.probability - table["p"]).mean() < 0.03


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("model", ["logistic", "auto"])
def test_a_person_does_not_predict_himself(model: str, rows: int) -> None:
    """A target that no feature tells, which a model fitted on the rows that it predicts would memorise."""
    draw, persons = np.random.default_rng(0), 100 + 200 // rows
    person = draw.permutation(np.repeat(np.arange(persons), rows))
    x, d = draw.normal(size=(persons, 8))[person], draw.permutation(persons)[person] % 2
    table = pd.DataFrame(x, columns=[*"abcdefgh"]).assign(s=person % 3, d=d, person=person)
    log = DecisionLog.of(table, decision="d", sensitive="s", person="person")
    _, fold = nuisance.folds_of(log, d.astype(float), 5, 0)
    assert (pd.Series(fold).groupby(person).nunique() == 1).all()
    assert np.bincount(fold).min() > len(d) / 10
    one = fitted(log, model)
    assert one.auc < 0.65
    np.testing.assert_array_equal(one.probability, fitted(log, model).probability)


def test_the_theory_of_the_logistic_regression() -> None:
    log = log_of(applicants(3000))
    one = fitted(log, "logistic", log.label)
    theory = one.parametric
    assert theory is not None
    assert (theory.residual[~log.revealed] == 0).all()
    weight = np.where(log.revealed, one.probability * (1 - one.probability), 0)
    information = log.inputs.T @ (log.inputs * weight[:, None])
    np.testing.assert_allclose(theory.inverse_information @ information, np.eye(3), atol=0.03)


def test_large_logs_are_fitted_on_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_ROWS", "MOST_ROWS_OF_PAIRS"):
        monkeypatch.setattr(nuisance, name, 1500)
    table = applicants(5000)
    assert np.abs(fitted(log_of(table)).probability - table["p"]).mean() < 0.05


@pytest.mark.parametrize("model", ["logistic", "auto"])
@pytest.mark.parametrize("positives", [0, 1, 2, 7])
def test_rare_targets(model: str, positives: int) -> None:
    """Two rows are enough for folds, also of one person, who is in one fold; of fewer there is no model."""
    log = log_of(applicants(300))
    rows = np.flatnonzero(log.revealed)
    label = np.where(log.revealed, 0.0, np.nan)
    label[rows[:positives]] = 1.0
    person = np.arange(300)
    person[rows[:positives]] = rows[0]
    for sample in (log, replace(log, person=np.unique(person, return_inverse=True)[1])):
        one = fit(sample, label, "label", model, 5, 0)
        assert (one is None) == (positives < 2)
        if one is not None:
            assert one.probability.min() > 0
            assert one.probability.mean() < 0.15
            assert np.isfinite(one.log_loss)


def test_a_model_without_probabilities_is_refused() -> None:
    log = log_of(applicants(100))
    with pytest.raises(FairAllError, match=r"LinearSVC\(\) is not possible"):
        fitted(log, LinearSVC())
