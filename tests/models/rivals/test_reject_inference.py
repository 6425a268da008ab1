"""Reject inference: each method against a direct computation, and simulations with a known truth."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression

from fairall.config import compose
from fairall.config.compose import checked
from fairall.errors import FairAllError
from fairall.models import estimators
from fairall.models.rivals.reject_inference import TREES, AcceptedOnly, Seen, Table, probit
from fairall.sklearn import SelectiveLabelsClassifier
from tests.conftest import ComposeConfig, MakeSetting

METHODS = "accepted_only reweighting parcelling fuzzy_augmentation heckman basl".split()


@pytest.fixture
def make(compose_config: ComposeConfig, two_features: MakeSetting) -> Any:
    """A learner of one seed for people with two real features, keys of whose configuration are given."""

    def made(method: str, **keys: Any) -> AcceptedOnly:
        config = replace(compose_config(f"model={method}").model, **keys)
        learner = config.build(two_features([0]))
        assert isinstance(learner, AcceptedOnly)
        return learner

    return made


def of(x: np.ndarray, accepted: np.ndarray, label: np.ndarray) -> Seen:
    return Seen(Table(x, np.where(accepted, label, 0.0), np.ones(len(x))), accepted, seed=5)


def seen(n: int, seed: int = 0, rate: float = 0.6) -> Seen:
    """People with three standardised inputs, of whom those with a large first one are accepted more often."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(n, 3))
    x = (x - x.mean(0)) / x.std(0)
    accepted = draw.random(n) < expit(logit(rate) + x[:, 0])
    return of(x, accepted, draw.random(n) < expit(x[:, 0] - x[:, 1]))


def regression(table: Table) -> np.ndarray:
    """Weights of the regression of a method on its table, the intercept last."""
    fit: Any = estimators.fitted(estimators.logistic(1.0), *table)
    return np.asarray(fit.weights_)


def fitted(x: np.ndarray, label: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Weights of scikit-learn's regression with C = 1, the intercept last."""
    model = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(x, label, weight)
    return np.append(model.coef_, model.intercept_)


def test_fuzzy_augmentation_is_the_regression_of_doubled_rows_and_changes_nothing(make: Any) -> None:
    people = seen(500)
    known, (x, label, _) = people.accepted, people.everybody
    own = fitted(x[known], label[known])
    p = expit(x[~known] @ own[:-1] + own[-1])
    of_all = np.concatenate([label[known], np.ones(len(p)), np.zeros(len(p))])
    weight = np.concatenate([np.ones(known.sum()), p, 1 - p])
    doubled = fitted(np.vstack([x[known], x[~known], x[~known]]), of_all, weight)
    weights = regression(make("fuzzy_augmentation").table(people))
    np.testing.assert_allclose(weights, doubled, atol=1e-4)
    np.testing.assert_allclose(weights, regression(people.known), atol=1e-4)


def test_labels_that_are_imputed_have_the_probability_of_fuzzy_augmentation(make: Any) -> None:
    people = seen(500)
    fuzzy, drawn = (make("fuzzy_augmentation", imputations=n).table(people) for n in (None, 400))
    labels = drawn.label.reshape(400, 500)
    assert set(np.unique(labels)) == {0.0, 1.0}
    assert (labels[:, people.accepted] == fuzzy.label[people.accepted]).all()
    np.testing.assert_allclose(labels.mean(0), fuzzy.label, atol=5 * 0.5 / 400**0.5)
    assert drawn.weight.sum() == pytest.approx(500)


@pytest.mark.parametrize("uplift", [1.0, 1.5, 4.0])
def test_parcelling_has_the_bad_rate_of_the_band_times_the_uplift(uplift: float, make: Any) -> None:
    people, learner = seen(600), make("parcelling", uplift=uplift, bands=5)
    _, target, weight = learner.table(people)
    known, (x, label, _) = people.accepted, people.everybody
    own = fitted(x[known], label[known])
    risk = pd.Series(1 - expit(x @ own[:-1] + own[-1]))
    bounds = np.quantile(risk[known], np.linspace(0, 1, 6))
    bounds[0], bounds[-1] = -np.inf, np.inf
    band = pd.cut(risk, bounds, labels=False, right=False)
    rates = pd.Series(1 - label[known]).groupby(band[known].to_numpy()).mean()
    expected = 1 - (uplift * rates[band].to_numpy()).clip(max=1)
    np.testing.assert_allclose(target[~known], expected[~known], atol=1e-9)
    assert (target[known] == label[known]).all()
    assert (weight == 1).all()
    assert rates.max() > 2 * rates.min()
    assert (expected == 0).any() == (uplift > 1.0)


def test_reweighting_is_unbiased_where_acceptance_depends_on_what_is_seen(make: Any) -> None:
    """The label depends on x², so that a linear regression of the accepted is not the one of everybody."""
    draw, n = np.random.default_rng(0), 40_000
    x = draw.normal(size=(n, 1))
    accepted, odds = draw.random(n) < expit(1.5 * x[:, 0]), x[:, 0] + x[:, 0] ** 2 - 1
    label = (draw.random(n) < expit(odds)).astype(float)
    truth = fitted(x, label)
    people = of(x, accepted, label)
    naive, weighted = (regression(make(name).table(people)) for name in ("accepted_only", "reweighting"))
    assert abs(naive - truth).max() > 0.5
    np.testing.assert_allclose(weighted, truth, atol=0.12)


def test_weights_are_bounded_and_one_on_average(make: Any) -> None:
    people = seen(500, rate=0.1)
    for least in (0.01, 1.0):
        x, _, weight = make("reweighting", least=least).table(people)
        assert np.array_equal(x, people.known.x)
        assert weight.mean() == pytest.approx(1.0)
        assert (weight.std() < 1e-12) == (least == 1.0)


def test_heckman_recovers_slopes_that_the_accepted_alone_do_not_have(make: Any) -> None:
    """Normal errors of decision and label correlate by 0.7; z sways the decision and not the label.

    A regression of labels on what is known before selection has a slope of x and none of z.
    """
    draw, n = np.random.default_rng(1), 60_000
    x, z = draw.normal(size=(2, n))
    errors = draw.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], n).T
    accepted, label = 0.8 * x + z + errors[0] > 0, (0.3 + 0.8 * x + errors[1] > 0).astype(float)
    columns = np.column_stack([x, z])
    truth = fitted(columns, label)
    people = of(columns, accepted, label)
    naive, two_steps = (regression(make(name).table(people)) for name in ("accepted_only", "heckman"))
    two_steps = np.delete(two_steps, -2)  # of the inverse Mills ratio
    assert abs(naive - truth).max() > 0.5
    assert abs(two_steps - truth).max() < 0.25 * abs(naive - truth).max()


def test_heckman_leaves_the_ratio_out_of_predictions(make: Any) -> None:
    people, learner = seen(800), make("heckman")
    index, (x, label, _) = probit(people.everybody.x, people.accepted, 1.0), people.known
    z = x @ index[:-1] + index[-1]
    ratio = norm.pdf(z) / norm.cdf(z)
    table = learner.table(people)
    np.testing.assert_allclose(table.x, np.column_stack([x, ratio / ratio.std()]), rtol=1e-9)
    assert np.array_equal(table.label, label)
    of_people = torch.tensor(x[:, :2]).float(), torch.tensor(np.sign(x[:, 2])).float()
    assert (learner.given(0, *of_people)[0][:, -1] == 0).all()


def test_probit_recovers_its_slopes() -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(50_000, 2))
    decision = draw.random(50_000) < norm.cdf(x @ [1.0, -0.5] + 0.3)
    np.testing.assert_allclose(probit(x, decision, 1e6), [1.0, -0.5, 0.3], atol=0.03)
    assert abs(probit(x, decision, 1e-5)[:2]).max() < 0.5


def test_basl_labels_rejected_people_between_the_quantiles_of_similarity(make: Any) -> None:
    people, keys = seen(900), {"similar": [0.2, 0.7], "iterations": 1, "sample": 1.0}
    learner = make("basl", labelled=0.2, imbalance=4, **keys)
    _, label, weight = learner.table(people)
    forest = IsolationForest(n_estimators=TREES, random_state=int(np.random.default_rng(5).integers(2**24)))
    x, given, _ = people.everybody
    similarity = forest.fit(people.known.x).score_samples(x)
    least, most = np.quantile(similarity[~people.accepted], [0.2, 0.7])
    allowed = ~people.accepted & (similarity >= least) & (similarity <= most)
    added = (weight > 0) & ~people.accepted
    assert (weight[people.accepted] == 1).all()
    assert (label[people.accepted] == given[people.accepted]).all()
    assert not (added & ~allowed).any()
    own = fitted(*people.known[:2])
    odds = x @ own[:-1] + own[-1]
    n = allowed.sum()
    ordered = np.sort(odds[allowed])
    bad, good = added & (label == 0), added & (label == 1)
    # Four bad ones for each good one, those with the least and the largest odds.
    assert abs(bad.sum() - 0.2 * n) <= 1
    assert abs(good.sum() - 0.05 * n) <= 1
    assert odds[bad].max() <= ordered[bad.sum() - 1] + 1e-6
    assert odds[good].min() >= ordered[-good.sum()] - 1e-6


def test_basl_goes_on_with_the_first_bounds_until_nobody_is_beyond_them(make: Any) -> None:
    people = seen(900)
    added = [
        int(make("basl", iterations=most, sample=1.0).table(people).weight.sum()) for most in (1, 3, 1000)
    ]
    assert added[0] < added[1] <= added[2] < len(people.accepted)


def test_uplift_is_right_where_rejected_people_are_so_much_worse(make: Any) -> None:
    """The decision knows what is hidden; at its factor parcelling errs less than at 1."""
    draw, n = np.random.default_rng(3), 20_000
    x, hidden = draw.normal(size=(2, n))
    label = (draw.random(n) < expit(1 + x + 1.5 * hidden)).astype(float)
    accepted = x + 2 * hidden + draw.normal(size=n) > -0.5
    people = of(x[:, None], accepted, label)
    bad = 1 - label
    true_uplift = bad[~accepted].mean() / bad[accepted].mean()
    errors = {}
    for uplift in (1.0, true_uplift):
        weights = regression(make("parcelling", uplift=float(uplift)).table(people))
        errors[uplift] = abs(expit(x * weights[0] + weights[1]).mean() - label.mean())
    assert true_uplift > 1.5
    assert errors[1.0] > 0.1
    assert errors[true_uplift] < errors[1.0] / 2


@pytest.mark.parametrize("method", METHODS)
def test_the_estimator_has_it_with_equal_rates(method: str) -> None:
    people = seen(600)
    x, label, _ = people.everybody
    group = np.where(x[:, 2] > 0, "a", "b")
    y = np.where(people.accepted, label, np.nan)
    policy = SelectiveLabelsClassifier(method, words=["fairness=demographic_parity"])
    policy.fit(x[:, :2], y, accepted=people.accepted, sensitive_features=group)
    assert policy.predict_proba(x[:, :2], sensitive_features=group)[:, 1].std() > 0.05
    decisions = policy.decision_proba(x[:, :2], sensitive_features=group)[:, 1]
    assert decisions[group == "a"].mean() == pytest.approx(decisions[group == "b"].mean(), abs=0.01)


@pytest.mark.parametrize("wrong", ["[0.5]", "[0.9,0.1]", "[0,1.1]"])
def test_quantiles_of_similarity_are_two_shares(wrong: str) -> None:
    with pytest.raises(FairAllError, match=r"model\.similar.*two shares in ascending order"):
        checked(compose.compose_config("model=basl", f"model.similar={wrong}"))
