"""Influence functions against derivatives by weights, with refitted models."""

from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from fairall.evaluate.estimated.estimates import BLOCKS, NORMAL, Column, Estimate, Sample
from fairall.evaluate.estimated.estimators import ESTIMATORS, People
from fairall.evaluate.estimated.fairness import VIEWS, rates
from fairall.evaluate.estimated.nuisance import Parametric
from tests.evaluate.simulated import applicants, models_of


def stack(*estimates: Estimate) -> Estimate:
    """Estimates of equal shape along a new first axis."""
    return Estimate(np.stack([one.value for one in estimates]), np.stack([one.phi for one in estimates]))


@dataclass
class Weighted:
    """A `Sample`, or its `Groups`, whose rows have weights, without influence functions."""

    weight: np.ndarray
    group: np.ndarray | None = None

    def by(self, group: np.ndarray, _: int) -> "Weighted":
        return Weighted(self.weight, group)

    def mean(self, column: Any) -> Estimate:
        weighted = self.weight * (column.value if isinstance(column, Column) else column) / self.weight.sum()
        if self.group is None:
            return Estimate(weighted.sum(), np.zeros(1))
        return Estimate(np.bincount(self.group, weighted), np.zeros((self.group.max() + 1, 1)))

    def support(self, *_: Any, **__: Any) -> Any:
        return NORMAL


# Clusters


def test_rows_of_a_person_count_together_in_blocks_of_many() -> None:
    """Sorted rows, of which systematic blocks would be alike, and contiguous ones far apart."""
    for people in (300, 12_000):
        values = np.sort(np.random.default_rng(0).exponential(size=people))
        error, person = values.std() / np.sqrt(people), np.repeat(np.arange(people), 2)
        sample = Sample(2 * people, person=person)
        assert sample.clusters == min(people, BLOCKS)
        assert (sample.cluster[::2] == sample.cluster[1::2]).all()
        assert sample.mean(values[person]).error == pytest.approx(error, rel=0.05)
        assert Sample(people).mean(values).error == pytest.approx(error, rel=0.05)


# Estimators and rates


class SmallLog:
    """A log of 90 rows of 45 people, whose models are refitted by weighted maximum likelihood."""

    def __init__(self) -> None:
        draw = np.random.default_rng(0)
        x, self.group, self.person = draw.normal(size=90), np.arange(90) % 2, np.arange(90) // 2
        self.inputs = np.column_stack([np.ones(90), x, self.group])
        self.revealed = draw.random(90) < expit(0.8 + 0.5 * x)
        self.label = np.where(self.revealed, draw.random(90) < expit(x), 0.0)
        self.target = expit(1.5 * x)
        self.amounts = draw.uniform(1, 2, 90), draw.uniform(0.2, 0.6, 90)

    def fit(self, target: np.ndarray, rows: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, Parametric]:
        model = LogisticRegression(C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-12)
        p = model.fit(self.inputs, target, weight * rows).predict_proba(self.inputs)[:, 1]
        information = (self.inputs.T * (weight * rows * p * (1 - p))) @ self.inputs
        return p, Parametric(self.inputs, np.where(rows, target - p, 0.0), np.linalg.inv(information))

    def estimates(self, weight: np.ndarray, weighted: bool = False, fixed: bool = False) -> Estimate:
        """Every estimator and rate, of a `Weighted` sample, or with influence functions."""
        p, propensity = self.fit(self.revealed, np.ones(90), weight)
        q, outcome = self.fit(self.label, self.revealed, weight)
        r = self.revealed.astype(float)
        w, column = Column(r / p, {"propensity": -r * (1 - p) / p}), Column(q, {"outcome": q * (1 - q)})
        people = People(self.target, self.revealed, self.label, w, w * self.target, column, *self.amounts)
        models = {"propensity": propensity, "outcome": outcome}
        if fixed:
            models = {name: replace(model, residual=np.zeros(90)) for name, model in models.items()}
        sample: Any = Weighted(weight) if weighted else Sample(90, models, self.person)
        by_view = [rates(view, people, sample.by(self.group, 2)).values() for view in VIEWS]
        by_group = [rate[group] for view in by_view for rate in view for group in (0, 1)]
        return stack(*(estimator(people, sample) for estimator in ESTIMATORS.values()), *by_group)


def test_influence_functions_are_derivatives_by_weights_with_refitted_models() -> None:
    """Of every estimator and every rate, with two models, amounts and clusters."""
    log, ones = SmallLog(), np.ones(90)
    found = log.estimates(ones)
    np.testing.assert_allclose(found.value, log.estimates(ones, weighted=True).value)
    # Central differences by the weight of each person.
    steps = 1e-4 * (log.person == np.arange(45)[:, None])
    up, down = (
        [log.estimates(ones + sign * step, weighted=True).value for step in steps] for sign in (1, -1)
    )
    expected = (np.transpose(up) - np.transpose(down)) / 2e-4
    np.testing.assert_allclose(found.phi, expected, atol=1e-6)
    without = log.estimates(ones, fixed=True)
    assert (np.abs(without.phi - found.phi).max(-1) > 1e-3).sum() > 15, "the models are part of it"


def test_models_of_an_evaluation_carry_their_derivatives() -> None:
    """Weights and predictions move as the log odds of the fitted models do."""
    people = applicants(800)
    known = np.random.default_rng(0).random(800) < 0.7
    models = models_of(people.assign(repaid=people["repaid"].where(known)))

    def columns(**changed: Any) -> list[Column]:
        fitted = (models.fitted | changed).values()
        with mock.patch("fairall.evaluate.models.fit", side_effect=fitted):
            again = models_of(models.log)
        assert again.outcome_column is not None
        return [again.weight, again.label_weight, again.outcome_column]

    for name in ("propensity", "labelled", "outcome"):
        fitted, moved = getattr(models, name), []
        for step in (1e-4, -1e-4):
            probability = expit(logit(fitted.probability) + step)
            changed = {name: replace(fitted, probability=probability)}
            moved.append(np.stack([column.value for column in columns(**changed)]))
        numeric = (moved[0] - moved[1]) / 2e-4
        found = np.stack([np.broadcast_to(column.slope.get(name, 0.0), 800) for column in columns()])
        np.testing.assert_allclose(found, numeric, atol=0.04 * np.abs(numeric).max())
