"""Nuisance models against populations whose probabilities are known."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from fairall.errors import FairAllError
from fairall.evaluate.estimated import nuisance
from fairall.evaluate.estimated.nuisance import Fitted, fit
from fairall.evaluate.log import DecisionLog
from reproduction.simulated_models import COLUMNS, SHARED, people


def population(n: int, *, seed: int = 0) -> tuple[DecisionLog, np.ndarray, np.ndarray]:
    """A log, the probabilities of acceptance and those of a positive label."""
    draw = np.random.default_rng(seed)
    x, z, s = draw.normal(size=n), draw.normal(size=n), draw.random(n) < 0.5
    score = x - 0.5 * z + 0.5 * s
    chance, outcome = expit(score), expit(0.5 + score / 2)
    accepted = draw.random(n) < chance
    label = np.where(accepted, (draw.random(n) < outcome).astype(float), np.nan)
    people = pd.DataFrame({"x": x, "z": z, "s": s, "accepted": accepted.astype(int), "label": label})
    return DecisionLog.of(people, decision="accepted", label="label", sensitive="s"), chance, outcome


def fitted(log: DecisionLog, model: Any = "auto", target: np.ndarray | None = None) -> Fitted:
    target = log.accepted.astype(float) if target is None else target
    result = fit(log, target, "target", model, 5, 0)
    assert result is not None
    return result


@pytest.mark.parametrize("model", ["auto", "logistic"])
def test_models_converge_to_a_logistic_truth(model: str) -> None:
    errors = []
    for n in (500, 8000):
        log, chance, outcome = population(n)
        pairs = ((log.accepted.astype(float), chance), (log.label, outcome))
        # The outcome holds for the rejected too.
        errors.append([np.abs(fitted(log, model, target).probability - p).mean() for target, p in pairs])
    assert np.max(errors[1]) < 0.025
    assert np.mean(errors[1]) < 0.6 * np.mean(errors[0])


@pytest.mark.parametrize("world", [{"shared": SHARED["parity of two"]}, {"kind": "tails"}])
def test_auto_finds_what_the_logistic_regression_cannot_and_is_calibrated(world: dict[str, Any]) -> None:
    one = people(np.random.default_rng(0), 3000, **world)
    log = DecisionLog.of(one.table, **COLUMNS)
    for target, truth in ((log.accepted.astype(float), one.propensity), (log.label, one.chance)):
        known = ~np.isnan(target)
        auto, logistic = (fitted(log, model, target) for model in ("auto", "logistic"))
        assert auto.parametric is None
        assert auto.log_loss < logistic.log_loss
        p = auto.probability
        assert np.abs(p - truth).mean() < 0.7 * np.abs(logistic.probability - truth).mean()
        bins = pd.qcut(p[known], 5, labels=False)
        means = pd.DataFrame({"p": p[known], "y": target[known]}).groupby(bins).mean()
        assert (means["p"] - means["y"]).abs().max() < 0.08


def test_a_given_classifier_is_calibrated() -> None:
    """Naive Bayes counts every copy of a feature as evidence."""
    log, chance, _ = population(3000)
    copies = replace(log, inputs=log.inputs[:, [0, *[1, 2, 3] * 5]])
    one = fitted(copies, GaussianNB())
    assert one.name == "GaussianNB"
    assert np.abs(one.probability - chance).mean() < 0.03


@pytest.mark.parametrize("model", ["logistic", "auto"])
def test_rows_do_not_predict_themselves(model: str) -> None:
    """A target that no feature tells, which a model fitted on the rows that it predicts would memorise."""
    draw, n = np.random.default_rng(0), 300
    people = pd.DataFrame({f"x{i}": draw.normal(size=n) for i in range(20)})
    people["s"], people["d"] = draw.choice(["a", "b"], n), draw.permutation(n) % 2
    log = DecisionLog.of(people, decision="d", sensitive="s")
    one = fitted(log, model)
    assert one.auc < 0.6
    np.testing.assert_array_equal(one.probability, fitted(log, model).probability)


@pytest.mark.parametrize("model", ["logistic", "auto"])
def test_persons_stay_within_a_fold(model: str) -> None:
    """Five rows each, with a target of the person, which their other rows would betray."""
    draw, persons = np.random.default_rng(0), 100
    person = draw.permutation(np.repeat(np.arange(persons), 5))
    x, d = draw.normal(size=(persons, 3))[person], draw.permutation(persons)[person] % 2
    people = pd.DataFrame(x, columns=["x", "y", "z"]).assign(s=person % 3, d=d, person=person)
    log = DecisionLog.of(people, decision="d", sensitive="s", person="person")
    _, fold = nuisance.folds_of(log, d.astype(float), 5, 0)
    assert (pd.Series(fold).groupby(person).nunique() == 1).all()
    assert np.bincount(fold).min() > 50
    assert fitted(log, model).auc < 0.65


def test_the_theory_of_the_logistic_regression() -> None:
    log, *_ = population(3000)
    one = fitted(log, "logistic", log.label)
    theory = one.parametric
    assert theory is not None
    assert (theory.residual[~log.revealed] == 0).all()
    weight = np.where(log.revealed, one.probability * (1 - one.probability), 0)
    information = log.inputs.T @ (log.inputs * weight[:, None])
    np.testing.assert_allclose(theory.inverse_information @ information, np.eye(4), atol=0.03)


def test_large_logs_are_fitted_on_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_ROWS", "MOST_ROWS_OF_PAIRS"):
        monkeypatch.setattr(nuisance, name, 1500)
    log, chance, _ = population(5000)
    assert np.abs(fitted(log).probability - chance).mean() < 0.05


@pytest.mark.parametrize("model", ["logistic", "auto"])
@pytest.mark.parametrize("positives", [0, 1, 2, 7])
def test_rare_targets(model: str, positives: int) -> None:
    """Two rows are enough for folds, also of one person, who is in one fold; of fewer there is no model."""
    log, *_ = population(300)
    rows = np.flatnonzero(log.revealed)
    label = np.where(log.revealed, 0.0, np.nan)
    label[rows[:positives]] = 1.0
    person = np.where(np.isin(np.arange(300), rows[:positives]), rows[0], np.arange(300))
    alone = replace(log, person=np.unique(person, return_inverse=True)[1])
    for sample in (log, alone):
        one = fit(sample, label, "label", model, 5, 0)
        assert (one is None) == (positives < 2)
        if one is not None:
            assert one.probability.min() > 0
            assert one.probability.mean() < 0.15
            assert np.isfinite(one.log_loss)


def test_unusable_models() -> None:
    log, *_ = population(100)
    for model, message in (
        ("forest", "model 'forest' is not possible"),
        (LinearSVC(), r"LinearSVC\(\) is not possible"),
    ):
        with pytest.raises(FairAllError, match=message):
            fit(log, log.accepted.astype(float), "decision", model, 5, 0)
