"""Nuisance models against populations whose probabilities are known."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from fairall.display.progress import steps_told
from fairall.errors import FairAllError
from fairall.evaluate.estimated import nuisance
from fairall.evaluate.estimated.nuisance import Fitted, fit
from fairall.evaluate.log import DecisionLog


def population(
    n: int, *, interaction: bool = False, seed: int = 0
) -> tuple[DecisionLog, np.ndarray, np.ndarray]:
    """A log, the probabilities of acceptance and those of a positive label."""
    draw = np.random.default_rng(seed)
    x, z, s = draw.normal(size=n), draw.normal(size=n), draw.random(n) < 0.5
    score = 2 * np.sign(x * z) if interaction else x - 0.5 * z + 0.5 * s
    chance, outcome = expit(score), expit(0.5 + score / 2)
    accepted = draw.random(n) < chance
    label = np.where(accepted, (draw.random(n) < outcome).astype(float), np.nan)
    people = pd.DataFrame({"x": x, "z": z, "s": s, "accepted": accepted.astype(int), "label": label})
    return DecisionLog.of(people, decision="accepted", label="label", sensitive="s"), chance, outcome


def fitted(log: DecisionLog, model: Any = "auto", target: np.ndarray | None = None, seed: int = 0) -> Fitted:
    target = log.accepted.astype(float) if target is None else target
    found = fit(log, target, "target", model, 5, seed)
    assert found is not None
    return found


@pytest.mark.parametrize("model", ["auto", "logistic"])
def test_models_converge_to_a_logistic_truth(model: str) -> None:
    errors = []
    for n in (500, 8000):
        log, chance, outcome = population(n)
        pairs = ((log.accepted.astype(float), chance), (log.label, outcome))
        # The outcome holds for the rejected too.
        errors.append([np.abs(fitted(log, model, target).probability - of).mean() for target, of in pairs])
    assert np.max(errors[1]) < 0.025
    assert np.mean(errors[1]) < 0.6 * np.mean(errors[0])


def test_each_fit_is_told() -> None:
    log, told = population(300)[0], list[str]()
    with steps_told(told.append):
        fitted(log, "auto")
        fitted(log, "logistic")
    assert told[:2] == ["fit 1 of 20: target, fold 1", "fit 2 of 20: target, fold 2"]
    assert told[19:21] == ["fit 20 of 20: target, fold 5", "fit 1 of 5: target, fold 1"]
    assert len(told) == 25


def test_auto_finds_an_interaction_that_the_logistic_regression_cannot_and_is_calibrated() -> None:
    log, chance, outcome = population(4000, interaction=True)
    everybody = np.ones(len(log), bool)
    for target, truth, known in (
        (log.accepted.astype(float), chance, everybody),
        (log.label, outcome, log.revealed),
    ):
        one = fitted(log, "auto", target)
        assert one.parametric is None
        assert one.log_loss < fitted(log, "logistic", target).log_loss - 0.02
        assert np.abs(one.probability - truth)[known].mean() < 0.045
        bins = pd.qcut(one.probability[known], 5, labels=False)
        means = pd.DataFrame({"p": one.probability[known], "y": target[known]}).groupby(bins).mean()
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
    """A target that no feature tells, which models fitted on the rows that they predict would memorise."""
    draw, n = np.random.default_rng(0), 300
    people = pd.DataFrame({f"x{i}": draw.normal(size=n) for i in range(20)})
    people["s"], people["d"] = draw.choice(["a", "b"], n), draw.permutation(n) % 2
    log = DecisionLog.of(people, decision="d", sensitive="s")
    one = fitted(log, model)
    assert one.auc < 0.6
    np.testing.assert_array_equal(one.probability, fitted(log, model).probability)
    # The targets of other folds change a prediction, those of its own do not.
    crossed = nuisance.CrossFit(log, log.accepted.astype(float), 5, 0)
    fold = crossed.fold
    rows = np.flatnonzero((fold == 2) & (log.group == 0))
    pair = [rows[log.accepted[rows]][0], rows[~log.accepted[rows]][0]]
    crossed.target[pair] = 1 - crossed.target[pair]
    if model == "logistic":
        other = crossed.fit("logistic").probability
        np.testing.assert_array_equal(other[fold == 2], one.probability[fold == 2])
        assert (other[fold != 2] != one.probability[fold != 2]).all()


@pytest.mark.parametrize("model", ["logistic", "auto"])
def test_persons_stay_within_a_fold(model: str) -> None:
    """Five rows each, with a target of the person, which their other rows would betray."""
    draw, persons = np.random.default_rng(0), 100
    person = draw.permutation(np.repeat(np.arange(persons), 5))
    x, d = draw.normal(size=(persons, 3))[person], draw.permutation(persons)[person] % 2
    people = pd.DataFrame(x, columns=["x", "y", "z"]).assign(s=person % 3, d=d, person=person)
    log = DecisionLog.of(people, decision="d", sensitive="s", person="person")
    assert log.person is not None
    fold = nuisance.CrossFit(log, d.astype(float), 5, 0).fold
    assert (pd.Series(fold).groupby(person).nunique() == 1).all()
    assert np.bincount(fold).min() > 50
    assert fitted(log, model).auc < 0.62


def test_the_theory_of_the_logistic_regression() -> None:
    log, *_ = population(3000)
    one = fitted(log, "logistic", log.label)
    theory = one.parametric
    assert theory is not None
    assert theory.inputs is log.inputs
    assert (theory.residual[~log.revealed] == 0).all()
    score = theory.inputs.astype(float) * theory.residual[:, None]
    assert (np.abs(score.sum(0)) < 0.5 * np.sqrt((score**2).sum(0))).all()
    weight = np.where(log.revealed, one.probability * (1 - one.probability), 0)
    information = theory.inputs.T @ (theory.inputs * weight[:, None])
    np.testing.assert_allclose(theory.inverse_information @ information, np.eye(4), atol=0.03)
    deviations = [
        logit(fitted(of, "logistic").probability) - logit(chance)
        for of, chance, _ in (population(400, seed=seed) for seed in range(40))
    ]
    parametric = fitted(population(400)[0], "logistic").parametric
    assert parametric is not None
    assert np.var(deviations) == pytest.approx(parametric.variance().mean(), rel=0.35)


def test_inverse_probabilities_of_the_logistic_regression_are_without_bias() -> None:
    """The mean of 1/p over small logs, whose plain inverse is too large on average."""
    plain, own = [], []
    for seed in range(60):
        log, chance, _ = population(150, seed=seed)
        one = fitted(log, "logistic")
        plain.append(np.mean(1 / one.probability - 1 / chance))
        own.append(np.mean(one.inverse() - 1 / chance))
    assert np.mean(plain) > 0.1
    assert abs(np.mean(own)) < 0.5 * np.mean(plain)
    assert fitted(population(300)[0], "auto").inverse().max() <= nuisance.MOST_WEIGHT


def test_large_logs_are_fitted_on_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MOST_ROWS", "MOST_ROWS_OF_PRODUCTS"):
        monkeypatch.setattr(nuisance, name, 1500)
    log, chance, _ = population(5000, interaction=True)
    assert np.abs(fitted(log).probability - chance).mean() < 0.12


@pytest.mark.parametrize("model", ["logistic", "auto"])
def test_rare_targets(model: str) -> None:
    """Two rows are enough for folds; of one, or of one class, there is no model."""
    log, *_ = population(300)
    rows = np.flatnonzero(log.revealed)
    for positives in (0, 1, 2, 7):
        label = np.where(log.revealed, 0.0, np.nan)
        label[rows[:positives]] = 1.0
        one = fit(log, label, "label", model, 5, 0)
        assert (one is None) == (positives < 2)
        if one is not None:
            assert 0 < one.probability.min() <= one.probability.mean() < 0.15
            assert np.isfinite(one.log_loss)
    # All positives are of one person, and so in one fold.
    label = np.where(log.revealed, 0.0, np.nan)
    label[rows[:4]] = 1.0
    person = np.where(np.isin(np.arange(300), rows[:4]), rows[0], np.arange(300))
    alone = replace(log, person=np.unique(person, return_inverse=True)[1])
    one = fit(alone, label, "label", model, 5, 0)
    assert one is not None
    assert np.isfinite(one.probability).all()


def test_unusable_models() -> None:
    log, *_ = population(100)
    for model, told in (("forest", "model 'forest' is not possible"), (LinearSVC(), "LinearSVC is no")):
        with pytest.raises(FairAllError, match=told):
            fit(log, log.accepted.astype(float), "decision", model, 5, 0)
