"""Influence functions against derivatives by weights, the bootstrap that refits all models, and DoubleML."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB

from fairall.evaluate.estimated import influence
from fairall.evaluate.estimated.estimators import ESTIMATORS, People
from fairall.evaluate.estimated.fairness import MEASURES, VIEWS, rates
from fairall.evaluate.estimated.influence import Column, Estimate, Sample
from fairall.evaluate.estimated.nuisance import Parametric
from fairall.evaluate.log import DecisionLog
from tests.evaluate.simulated import COST, applicants, judged, log_of, models_of


def stack(estimates: Sequence[Estimate]) -> Estimate:
    """Estimates of equal shape along a new first axis."""
    return Estimate(np.stack([one.value for one in estimates]), np.stack([one.phi for one in estimates]))


@dataclass
class Weighted:
    """A `Sample`, or its `Groups`, whose rows have weights, without influence functions."""

    weight: np.ndarray
    group: np.ndarray | None = None
    groups: int = 1

    def by(self, group: np.ndarray, groups: int) -> "Weighted":
        return Weighted(self.weight, group, groups)

    def mean(self, column: Any) -> Estimate:
        values = column.value if isinstance(column, Column) else column
        cell = np.zeros(len(values), dtype=int) if self.group is None else self.group
        sums = np.bincount(cell, weights=self.weight * values, minlength=self.groups) / self.weight.sum()
        found = Estimate(sums, np.zeros((self.groups, 1)))
        return found[0] if self.group is None else found

    def support(self, *_: Any, **__: Any) -> Any:
        return None


def by_weights(of: Callable[[np.ndarray], np.ndarray], person: np.ndarray, step: float = 1e-4) -> np.ndarray:
    """Central differences of a statistic by the weight of each person, shape (..., M)."""
    found = []
    for one in range(person.max() + 1):
        moved = [of(1.0 + sign * step * (person == one)) for sign in (1, -1)]
        found.append((moved[0] - moved[1]) / (2 * step))
    return np.stack(found, -1)


# Arithmetic


def test_arithmetic_of_estimates_is_that_of_derivatives() -> None:
    draw = np.random.default_rng(0)
    columns, person = draw.uniform(0.2, 1.0, (3, 40)), np.repeat(np.arange(20), 2)

    def of(sample: Any) -> Estimate:
        a, b, c = (sample.mean(column) for column in columns)
        both = stack([1.0 - a * 2.0 + 0.3, -(a / b) * c - b, np.float64(0.5) * (c - 1.0) / (a + b)])
        return stack([both[1] + both[2], both[0], (both * np.array([1.0, 2.0, 3.0]))[2]])

    found = of(Sample(40, person=person))
    np.testing.assert_allclose(found.value, of(Weighted(np.ones(40))).value)
    np.testing.assert_allclose(found.phi, by_weights(lambda w: of(Weighted(w)).value, person), atol=1e-8)
    np.testing.assert_allclose(found.error, np.sqrt((found.phi**2).sum(-1)))
    assert np.isnan((found / Estimate(np.array([0.0, -1.0, np.nan]), np.ones((3, 20)))).value).all()


def test_arithmetic_of_columns_is_that_of_derivatives() -> None:
    draw = np.random.default_rng(0)
    eta, label = draw.normal(size=(2, 30)), draw.random(30)

    def of(eta: np.ndarray) -> Column:
        p, q = (
            Column(expit(one), {name: expit(one) * expit(-one)}) for name, one in zip("pq", eta, strict=True)
        )
        return (1.0 - p) * q + label * p - (q - 0.3) * 2.0 + p * p + (-q)

    for number, name in enumerate("pq"):
        step = 1e-5 * (np.arange(2) == number)[:, None]
        numeric = (of(eta + step).value - of(eta - step).value) / 2e-5
        np.testing.assert_allclose(of(eta).slope[name], numeric, atol=1e-8)


# Clusters


def test_rows_of_a_person_count_together() -> None:
    values = np.random.default_rng(0).exponential(size=300)
    once = Sample(300).mean(values)
    assert once.error == pytest.approx(values.std() / np.sqrt(300))
    repeated, person = np.tile(values, 5), np.tile(np.arange(300), 5)
    by_person = Sample(1500, person=person).mean(repeated)
    assert by_person.error == pytest.approx(once.error)
    assert Sample(1500).mean(repeated).error == pytest.approx(once.error / np.sqrt(5))
    # Of persons with different numbers of rows the mean is a ratio.
    person = np.random.default_rng(1).integers(60, size=300)
    numeric = by_weights(lambda weight: np.asarray(np.average(values, weights=weight)), person)
    np.testing.assert_allclose(Sample(300, person=person).mean(values).phi, numeric, atol=1e-9)


@pytest.mark.parametrize("rows_each", [1, 2])
def test_many_persons_in_blocks(rows_each: int) -> None:
    """Sorted rows, of which systematic blocks would be alike, and contiguous ones far apart."""
    persons = 12_000
    person = np.repeat(np.arange(persons), rows_each)
    values = np.sort(np.random.default_rng(0).exponential(size=persons))[person]
    sample = Sample(len(person), person=person)
    assert sample.cluster.max() + 1 == influence.BLOCKS
    assert all(len(np.unique(of)) == 1 for of in np.split(sample.cluster[: 100 * rows_each], 100))
    assert sample.mean(values).error == pytest.approx(values.std() / np.sqrt(persons), rel=0.05)


# Estimators and rates


def maximum_likelihood(inputs: np.ndarray, target: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Coefficients of a weighted logistic regression, by Newton's method."""
    b = np.zeros(inputs.shape[1])
    for _ in range(25):
        p = expit(inputs @ b)
        b += np.linalg.solve((inputs.T * (weight * p * (1 - p))) @ inputs, inputs.T @ (weight * (target - p)))
    return b


class SmallLog:
    """A log whose models are refitted by weighted maximum likelihood on all rows."""

    def __init__(self, logged: bool, amounts: bool = True) -> None:
        draw, n = np.random.default_rng(0), 90
        x, self.group, self.logged = draw.normal(size=n), np.arange(n) % 2, logged
        self.inputs = np.column_stack([np.ones(n), x, self.group])
        self.person = np.repeat(np.arange(n // 2), 2)
        self.accepted = draw.random(n) < expit(0.8 + 0.5 * x)
        self.revealed = self.accepted & (draw.random(n) < 0.8)
        self.label = np.where(self.revealed, draw.random(n) < expit(x), 0.0)
        self.target = self.accepted.astype(float) if logged else expit(1.5 * x)
        self.stake, self.break_even = draw.uniform(1, 2, n), draw.uniform(0.2, 0.6, n)

    def fit(self, target: np.ndarray, rows: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, Parametric]:
        b = maximum_likelihood(self.inputs[rows], target[rows].astype(float), weight[rows])
        p = expit(self.inputs @ b)
        information = (self.inputs.T * (weight * rows * p * (1 - p))) @ self.inputs
        return p, Parametric(self.inputs, np.where(rows, target - p, 0.0), np.linalg.inv(information))

    def people(self, weight: np.ndarray) -> tuple[People, dict[str, Parametric]]:
        all_rows = np.ones(len(self.inputs), dtype=bool)
        p, propensity = self.fit(self.accepted, all_rows, weight)
        known, labelled = self.fit(self.revealed, self.accepted, weight)
        q, outcome = self.fit(self.label, self.revealed, weight)
        r = self.revealed.astype(float)
        of_label = Column(r / known, {"labelled": -r * (1 - known) / known})
        w = of_label * Column(1 / p, {"propensity": -(1 - p) / p})
        people = People(
            self.target,
            self.revealed,
            self.label,
            w,
            of_label if self.logged else w * self.target,
            Column(q, {"outcome": q * (1 - q)}),
            self.stake,
            self.break_even,
        )
        return people, {"propensity": propensity, "labelled": labelled, "outcome": outcome}

    def estimates(self, people: People, sample: Any) -> Iterator[Estimate]:
        for estimator in ESTIMATORS.values():
            yield estimator(people, sample)
        for view in VIEWS:
            for rate in rates(view, people, sample.by(self.group, 2)).values():
                yield rate[0]
                yield rate[1]


@pytest.mark.parametrize("logged", [False, True])
def test_influence_functions_are_derivatives_by_weights_with_refitted_models(logged: bool) -> None:
    """Of every estimator and every rate, with three models, amounts and clusters."""
    log = SmallLog(logged)
    people, models = log.people(np.ones(90))
    found = stack(list(log.estimates(people, Sample(90, models, log.person))))

    def refitted(weight: np.ndarray) -> np.ndarray:
        people, _ = log.people(weight)
        return np.stack([one.value for one in log.estimates(people, Weighted(weight))])

    np.testing.assert_allclose(found.value, refitted(np.ones(90)))
    np.testing.assert_allclose(found.phi, by_weights(refitted, log.person), atol=1e-6)
    # The models are part of it.
    fixed = {name: replace(one, residual=0 * one.residual) for name, one in models.items()}
    without = stack(list(log.estimates(people, Sample(90, fixed, log.person))))
    assert (np.abs(without.phi - found.phi).max(-1) > 1e-3).sum() > 20


def bootstrapped(
    people: pd.DataFrame, target: np.ndarray, keys: dict[str, Any], draws: int
) -> tuple[np.ndarray, np.ndarray]:
    """Standard errors of estimators and rates, and those of the bootstrap that refits the models."""

    def found(rows: np.ndarray) -> Estimate:
        table = people.iloc[rows].assign(person=rows)
        log = log_of(table, person="person", **keys)
        one = judged(models_of(log), target[rows])
        values = [one.value(name) for name in ESTIMATORS]
        of_rates = [one.rates[view][name][g] for view in VIEWS for name in MEASURES for g in (0, 1)]
        return stack([*values, *of_rates])

    draw = np.random.default_rng(1)
    again = [found(draw.integers(len(people), size=len(people))).value for _ in range(draws)]
    return found(np.arange(len(people))).error, np.std(again, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("propensities", ["recorded", "estimated", "incomplete"])
def test_standard_errors_are_those_of_the_bootstrap_that_refits_everything(propensities: str) -> None:
    people = applicants(800).assign(p=lambda table: 0.2 + 0.6 * table["p"])
    draw = np.random.default_rng(2)
    people["granted"] = (draw.random(800) < people["p"]).astype(int)
    people["repaid"] = people["truth"].where(people["granted"] == 1)
    if propensities == "incomplete":
        people["repaid"] = people["repaid"].where(draw.random(800) < expit(1.5 + people["score"]))
    keys = {"propensity": "p"} if propensities == "recorded" else {}
    errors, expected = bootstrapped(people, people["new"].to_numpy(), keys, draws=300)
    some = expected > 1e-12
    np.testing.assert_allclose(errors[some] / expected[some], 1.0, atol=0.12)


@pytest.mark.whole
def test_standard_errors_are_the_deviation_over_logs() -> None:
    """Of the value with three estimated models: a quick version of the bootstrap."""
    values, errors = [], []
    for seed in range(60):
        people = applicants(400, seed=seed)
        known = np.random.default_rng(seed).random(400) < expit(1.0 + people["score"])
        one = judged(models_of(people.assign(repaid=people["repaid"].where(known))), people["new"])
        found = stack([one.value(name) for name in ESTIMATORS])
        values.append(found.value)
        errors.append(found.error)
    # 60 logs tell a deviation to 9 %.
    np.testing.assert_allclose(np.mean(errors, axis=0) / np.std(values, axis=0), 1.0, atol=0.22)


@pytest.mark.parametrize("complete", [True, False])
def test_doubly_robust_values_and_errors_are_those_of_doubleml(complete: bool) -> None:
    """With the same predictions: the average potential outcome of a·(y − c), treated whose label is known."""
    import doubleml

    people = applicants(600)
    if not complete:
        people["repaid"] = people["repaid"].where(np.random.default_rng(0).random(600) < 0.7)
    models = models_of(people, GaussianNB())
    one = judged(models, people["new"])
    a, r, y = one.target, one.log.revealed, np.nan_to_num(one.log.label)
    assert models.propensity is not None
    p = models.propensity.probability * (1.0 if models.labelled is None else models.labelled.probability)
    assert models.outcome is not None
    data = doubleml.DoubleMLData.from_arrays(one.log.design, a * (y - COST), r.astype(float))
    theirs = doubleml.DoubleMLAPO(
        data,
        LinearRegression(),
        LogisticRegression(),
        treatment_level=1,
        ps_processor_config=doubleml.utils.PSProcessorConfig(clipping_threshold=1e-6),
    )
    q = a * (models.outcome.probability - COST)
    predictions = {"ml_g_d_lvl0": q[:, None], "ml_g_d_lvl1": q[:, None], "ml_m": p[:, None]}
    theirs.fit(external_predictions={"d": predictions})
    ours = one.value("dr")
    assert ours.value == pytest.approx(theirs.coef[0], abs=1e-10)
    assert ours.error == pytest.approx(theirs.se[0], rel=1e-6)


def test_models_of_an_evaluation_carry_their_derivatives() -> None:
    """Weights and predictions move as the log odds of the fitted models do."""
    people = applicants(800)
    people["repaid"] = people["repaid"].where(np.random.default_rng(0).random(800) < 0.7)
    models = models_of(people)

    def moved(name: str, by: float) -> np.ndarray:
        other = models_of(models.log)
        fitted = getattr(other, name)
        setattr(other, name, replace(fitted, probability=expit(logit(fitted.probability) + by)))
        assert other.outcome_column is not None
        return np.stack([other.weight.value, other.label_weight.value, other.outcome_column.value])

    assert models.outcome_column is not None
    columns = (models.weight, models.label_weight, models.outcome_column)
    for name in ("propensity", "labelled", "outcome"):
        numeric = (moved(name, 1e-4) - moved(name, -1e-4)) / 2e-4
        found = np.stack([np.broadcast_to(column.slope.get(name, 0.0), 800) for column in columns])
        np.testing.assert_allclose(found, numeric, atol=0.04 * np.abs(numeric).max())
    assert isinstance(models.log, DecisionLog)
