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
from fairall.evaluate import nuisance
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.nuisance import fit_outcome, fit_propensity


def population(
    n: int, *, interaction: bool = False, seed: int = 0
) -> tuple[DecisionLog, np.ndarray, np.ndarray]:
    """A log, the probabilities of acceptance and those of a positive label."""
    draw = np.random.default_rng(seed)
    x, z, s = draw.normal(size=n), draw.normal(size=n), draw.random(n) < 0.5
    score = 3 * np.sign(x * z) if interaction else x - 0.5 * z + 0.5 * s
    chance, outcome = expit(score), expit(0.5 + score / 2)
    accepted = draw.random(n) < chance
    label = np.where(accepted, (draw.random(n) < outcome).astype(float), np.nan)
    people = pd.DataFrame({"x": x, "z": z, "s": s, "accepted": accepted.astype(int), "label": label})
    return DecisionLog.of(people, decision="accepted", label="label", sensitive="s"), chance, outcome


def test_logistic_truth_picks_the_logistic_regression_and_converges() -> None:
    errors = []
    for n in (500, 8000):
        log, chance, outcome = population(n)
        fitted = fit_propensity(log), fit_outcome(log)
        assert [one.name for one in fitted] == ["logistic regression"] * 2
        # The outcome holds for the rejected too.
        errors.append(
            [np.abs(one.probability - of).mean() for one, of in zip(fitted, (chance, outcome), strict=True)]
        )
    assert (np.array(errors[1]) < 0.02).all()
    assert np.mean(errors[1]) < 0.6 * np.mean(errors[0])


def test_an_interaction_picks_the_gradient_boosting_which_is_calibrated() -> None:
    log, chance, outcome = population(5000, interaction=True)
    for fit, truth, known, target in (
        (fit_propensity, chance, np.ones(len(log), bool), log.accepted),
        (fit_outcome, outcome, log.revealed, log.label),
    ):
        one = fit(log)
        assert one.name == "gradient boosting"
        assert one.derivative is None
        assert one.log_loss < fit(log, "logistic").log_loss
        assert np.abs(one.probability - truth)[known].mean() < 0.1
        bins = pd.qcut(one.probability[known], 5, labels=False)
        means = (
            pd.DataFrame({"p": one.probability[known], "y": target[known].astype(float)}).groupby(bins).mean()
        )
        assert (means["p"] - means["y"]).abs().max() < 0.05


def test_calibration_corrects_an_overconfident_model() -> None:
    log, chance, _ = population(3000)
    copies = log.inputs[:, [0, *[1, 2, 3] * 5]]  # naive Bayes counts every copy as evidence
    confident = replace(log, inputs=copies)
    one = fit_propensity(confident, GaussianNB())
    assert one.name == "GaussianNB"
    assert np.abs(one.probability - chance).mean() < 0.03


@pytest.mark.parametrize("model", ["logistic", "boosting"])
def test_rows_do_not_predict_themselves(model: str) -> None:
    """A target that no feature tells, memorised by models fitted on the rows that they predict."""
    draw = np.random.default_rng(0)
    n = 300
    people = pd.DataFrame({f"x{i}": draw.normal(size=n) for i in range(40)})
    people["s"], people["d"] = draw.choice(["a", "b"], n), draw.permutation(n) % 2
    log = DecisionLog.of(people, decision="d", sensitive="s")
    one = fit_propensity(log, model)
    assert one.auc < 0.6
    np.testing.assert_array_equal(one.probability, fit_propensity(log, model).probability)
    # The labels of other rows change a prediction, those of its own fold do not.
    if model == "logistic":
        fold = nuisance._CrossFit(log, log.accepted.astype(float), "decision", 5, 0).fold
        rows = np.flatnonzero((fold == 2) & (log.group == 0))
        pair = rows[log.accepted[rows]][0], rows[~log.accepted[rows]][0]
        crossed = nuisance._CrossFit(log, log.accepted.astype(float), "decision", 5, 0)
        crossed.target[list(pair)] = 1 - crossed.target[list(pair)]
        other = crossed.fit("logistic").probability
        np.testing.assert_array_equal(other[fold == 2], one.probability[fold == 2])
        assert (other[fold != 2] != one.probability[fold != 2]).all()


def test_the_theory_of_the_logistic_regression() -> None:
    """The variance of its coefficients is their sandwich, and scores of fitted rows add up to about zero."""
    log, *_ = population(4000)
    one = fit_outcome(log, "logistic")
    theory = one.derivative
    assert theory is not None
    assert theory.inputs is log.inputs
    assert (theory.residual[~log.revealed] == 0).all()
    score = theory.inputs.astype(float) * theory.residual[:, None]
    deviation = np.sqrt((score**2).sum(0))
    assert (np.abs(score.sum(0)) < 0.5 * deviation).all()
    weight = np.where(log.revealed, one.probability * (1 - one.probability), 0)
    information = theory.inputs.T @ (theory.inputs * weight[:, None])
    np.testing.assert_allclose(theory.inverse_information @ information, np.eye(4), atol=0.02)


def test_large_logs_are_fitted_on_some_rows_and_compared_on_a_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nuisance, "MOST_ROWS", 2000)
    for interaction, name in ((False, "logistic regression"), (True, "gradient boosting")):
        log, chance, _ = population(6000, interaction=interaction)
        one = fit_propensity(log)
        assert one.name == name
        assert np.abs(one.probability - chance).mean() < 0.12


def test_rare_targets_and_unusable_models() -> None:
    log, *_ = population(200)
    few = replace(log, label=np.where(log.revealed, 0.0, np.nan))
    with pytest.raises(FairAllError, match="two rows of either label; there are 5 folds, 0 positive and"):
        fit_outcome(few)
    rows = np.flatnonzero(log.revealed)
    few.label[rows[:2]] = 1.0
    assert np.isfinite(fit_outcome(few, "logistic").probability).all()
    wrong: list[tuple[Any, str]] = [
        ("forest", "model 'forest' is not possible"),
        (LinearSVC(), "LinearSVC is no"),
    ]
    for model, told in wrong:
        with pytest.raises(FairAllError, match=told):
            fit_propensity(log, model)
