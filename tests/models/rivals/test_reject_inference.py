"""Reject inference: the table of each method against a direct computation."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression

from fairall.models.rivals.reject_inference import Table, probit
from tests.models.conftest import built

SEED = 5


def people(n: int, rate: float = 0.6) -> Table:
    """People with three standardised inputs, of whom those with a large first one are accepted more often."""
    draw = np.random.default_rng(0)
    x = draw.normal(size=(n, 3))
    x = (x - x.mean(0)) / x.std(0)
    known = draw.random(n) < expit(logit(rate) + x[:, 0])
    return Table(x, known * (draw.random(n) < expit(x[:, 0] - x[:, 1])), np.ones(n), known)


def inferred(method: str, everybody: Table, **keys: Any) -> Table:
    """The table of a method, and of a copy of these people."""
    copy = Table(*map(np.copy, everybody))
    found: Table = built(method, [0], **keys).inferred(copy, copy.rows(copy.known), SEED)
    return found


def fitted(x: np.ndarray, label: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Slopes and intercept of scikit-learn's regression with C = 1."""
    model = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(x, label, weight)
    return np.append(model.coef_, model.intercept_)


def odds(x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return np.asarray(x @ weights[:-1] + weights[-1])


def test_fuzzy_augmentation_imputes_what_the_accepted_say_or_draws_it() -> None:
    everybody = people(500)
    known = everybody.rows(everybody.known)
    p = expit(odds(everybody.x, fitted(*known[:2])))
    fuzzy = inferred("fuzzy_augmentation", everybody)
    expected = np.where(everybody.known, everybody.label, p)
    np.testing.assert_allclose(fuzzy.label, expected, atol=1e-6)
    drawn = inferred("fuzzy_augmentation", everybody, imputations=400)
    labels = drawn.label.reshape(400, 500)
    assert set(np.unique(labels)) == {0.0, 1.0}
    assert (labels[:, everybody.known] == known.label).all()
    np.testing.assert_allclose(labels.mean(0), expected, atol=5 * 0.5 / 400**0.5)
    assert drawn.weight.sum() == pytest.approx(500)
    assert (drawn.x.reshape(400, 500, 3) == everybody.x).all()


@pytest.mark.parametrize("uplift", [1.0, 1.5, 4.0])
def test_parcelling_has_the_bad_rate_of_the_band_times_the_uplift(uplift: float) -> None:
    everybody = people(600)
    x, label, _, known = everybody
    risk = pd.Series(1 - expit(odds(x, fitted(x[known], label[known]))))
    bounds = np.quantile(risk[known], np.linspace(0, 1, 6))
    bounds[0], bounds[-1] = -np.inf, np.inf
    band = pd.cut(risk, bounds, labels=False, right=False)
    rates = pd.Series(1 - label[known]).groupby(band[known].to_numpy()).mean()
    expected = 1 - (uplift * rates[band].to_numpy()).clip(max=1)
    target = inferred("parcelling", everybody, uplift=uplift, bands=5)
    np.testing.assert_allclose(target.label, np.where(known, label, expected), atol=1e-9)
    assert (target.weight == 1).all()
    assert rates.max() > 2 * rates.min()
    assert (expected == 0).any() == (uplift > 1.0)


def test_a_band_without_accepted_people_has_the_bad_rate_of_all() -> None:
    x = np.array([[-1.0], [1.0], [0.0], [2.0]])
    everybody = Table(x, np.array([0.0, 1.0, 0.0, 0.0]), np.ones(4), np.array([True, True, False, False]))
    target = inferred("parcelling", everybody, uplift=1.0, bands=10)
    assert target.label.tolist() == [0.0, 1.0, 0.5, 1.0]


@pytest.mark.parametrize("least", [0.01, 0.5, 1.0])
def test_reweighting_divides_by_the_probability_of_acceptance(least: float) -> None:
    everybody = people(500, rate=0.3)
    x, label, weight, _ = inferred("reweighting", everybody, least=least)
    assert np.array_equal(x, everybody.x[everybody.known])
    assert np.array_equal(label, everybody.label[everybody.known])
    p = expit(odds(x, fitted(everybody.x, everybody.known))).clip(min=least)
    np.testing.assert_allclose(weight, 1 / p / (1 / p).mean(), rtol=1e-4)


def test_heckman_adds_the_ratio_of_a_probit_to_the_table_and_not_to_predictions() -> None:
    everybody, zero = people(800), np.zeros((800, 1))
    known = everybody.rows(everybody.known)
    z = odds(known.x, probit(everybody.x, everybody.known, 1.0))
    ratio = norm.pdf(z) / norm.cdf(z)
    table = inferred("heckman", everybody._replace(x=np.hstack([everybody.x, zero])))
    np.testing.assert_allclose(table.x, np.column_stack([known.x, ratio / ratio.std()]), rtol=1e-9)
    assert np.array_equal(table.label, known.label)
    of_people = torch.zeros(4, 2), torch.ones(4)
    assert built("heckman", [0]).given(0, *of_people)[0].tolist() == [[0.0, 0.0, 1.0, 0.0]] * 4


def test_probit_recovers_its_slopes() -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(50_000, 2))
    decision = draw.random(50_000) < norm.cdf(x @ [1.0, -0.5] + 0.3)
    np.testing.assert_allclose(probit(x, decision, 1e6), [1.0, -0.5, 0.3], atol=0.03)
    assert abs(probit(x, decision, 1e-5)[:2]).max() < 0.5


def test_basl_labels_rejected_people_between_the_quantiles_of_similarity() -> None:
    everybody = people(900)
    x, given, _, known = everybody
    keys = {"similar": [0.2, 0.7], "iterations": 1, "sample": 1.0, "labelled": 0.2, "imbalance": 4}
    table = inferred("basl", everybody, **keys)
    forest = IsolationForest(random_state=int(np.random.default_rng(SEED).integers(2**24)))
    similarity = forest.fit(x[known]).score_samples(x)
    least, most = np.quantile(similarity[~known], [0.2, 0.7])
    asked = x[~known & (similarity >= least) & (similarity <= most)]
    asked = asked[odds(asked, fitted(x[known], given[known])).argsort()]
    # Four bad ones for each good one, those with the least and the largest odds.
    bad, good = asked[: int(0.2 * len(asked) + 0.999)], asked[-int(0.05 * len(asked) + 0.999) :]
    expected = [*np.column_stack([x[known], given[known]]).tolist()]
    expected += [[*row, value] for rows, value in ((bad, 0.0), (good, 1.0)) for row in rows.tolist()]
    assert sorted(np.column_stack([table.x, table.label]).tolist()) == sorted(expected)


def test_basl_goes_on_with_the_first_bounds_until_nobody_is_beyond_them() -> None:
    keys = {"sample": 1.0, "similar": [0.0, 1.0]}
    added = [len(inferred("basl", people(900), iterations=most, **keys).x) for most in (1, 3, 1000)]
    assert added[0] < added[1] <= added[2] < 900
    everybody = people(900)
    two = everybody.rows(np.append(np.flatnonzero(everybody.known), np.flatnonzero(~everybody.known)[:2]))
    assert inferred("basl", two, similar=[0.4, 0.6]).known.all(), "between two quantiles is nobody"
