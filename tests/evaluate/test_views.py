"""Columns of the views: sums by hand, and derivatives against central differences."""

import copy
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from fairall.evaluate.estimators import Rows, value_columns
from fairall.evaluate.evaluation import Evaluator
from fairall.evaluate.intervals import Columns
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.views import VIEWS, View, view_columns
from tests.evaluate.test_estimators import check_derivatives, made_up, shifted

ALL_VIEWS: tuple[View, ...] = (*VIEWS, "everyone")


def test_columns_by_hand() -> None:
    """One person who was accepted with a label, and one who was rejected."""
    rows = Rows(
        np.array([0.5, 0.8]), np.array([0.25, 0.1]), np.array([True, False]), np.array([1.0, 0.0]),
        np.array([0.6, 0.3]),
    )  # fmt: skip
    score = np.array([0.2, 0.9])
    expected: dict[View, list[list[float]]] = {
        "naive": [[1, 0.5, 1, 0.5, 0.2], [0] * 5],
        "ips": [[4, 2, 4, 2, 0.8], [0] * 5],
        # q + r (y − q) / p = 0.6 + 4 · 0.4
        "dr": [[1, 0.5, 2.2, 1.1, 0.2], [1, 0.8, 0.3, 0.24, 0.9]],
        "everyone": [[1, 0.5, 0, 0, 0.2], [1, 0.8, 0, 0, 0.9]],
    }
    for view, columns in expected.items():
        np.testing.assert_allclose(view_columns(view, rows, score).values, columns, atol=1e-12)


def test_the_columns_of_the_logged_decisions_weight_by_the_share_of_labels() -> None:
    """The accepted have the weight 1/labelled, people of one label still the inverse propensity."""
    rows = Rows(
        np.array([1.0, 1.0, 0.0]), np.array([0.25, 0.25, 0.25]), np.array([True, False, False]),
        np.array([1.0, 0.0, 0.0]), np.array([0.6, 0.5, 0.3]), labelled=0.5, logged=True,
    )  # fmt: skip
    ips = view_columns("ips", rows, rows.target).values
    np.testing.assert_allclose(ips[0], [4, 2, 4, 2, 4])
    np.testing.assert_array_equal(ips[1:], 0)
    dr = view_columns("dr", rows, rows.target).values
    np.testing.assert_allclose(dr[0, 3], 0.6 + 2 * 0.4)
    np.testing.assert_allclose(dr[1, 3], 0.5)
    np.testing.assert_allclose(dr[2, 3], 0.0)


@pytest.mark.parametrize("moving_score", [False, True])
@pytest.mark.parametrize("logged", [False, True])
@pytest.mark.parametrize("labelled", [1.0, 0.6])
@pytest.mark.parametrize("view", ALL_VIEWS)
def test_derivatives_of_the_columns(view: View, labelled: float, logged: bool, moving_score: bool) -> None:
    """In the log odds of acceptance and of the outcome; the score may be the propensity of acceptance."""
    rows = replace(made_up(labelled=labelled), logged=logged)

    def columns_of(rows: Rows) -> Columns:
        acceptance = rows.propensity / rows.labelled
        if not moving_score:
            return view_columns(view, rows, rows.target)
        return view_columns(view, rows, acceptance, score_slope=acceptance * (1 - acceptance))

    check_derivatives(columns_of(rows), lambda by, what: columns_of(shifted(rows, by, what)).values)


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    """Of a log with estimated propensities, in which a third of the accepted have no label yet."""
    draw = np.random.default_rng(0)
    n = 1200
    x, s = draw.normal(size=n), draw.random(n) < 0.4
    accepted = draw.random(n) < expit(x + s)
    label = np.where(accepted & (draw.random(n) < 2 / 3), draw.random(n) < expit(x), np.nan)
    table = pd.DataFrame({"x": x, "s": s, "d": accepted.astype(int), "y": label, "target": expit(2 * x)})
    log = DecisionLog.of(table, decision="d", label="y", sensitive="s", not_features=["target"])
    return Evaluator(log, propensity_model="logistic", outcome_model="logistic")


@pytest.mark.parametrize("policy", ["target", None])
def test_derivatives_in_the_models_of_an_evaluation(
    policy: str | None, evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The columns move as the probabilities of the fitted models do, for the value and for every view."""
    monkeypatch.setattr("fairall.evaluate.estimators.switch_threshold", lambda rows, cost: 2.0)

    def moved(by: float, what: str, view: View | None) -> Columns:
        other = copy.copy(evaluator)
        vars(other).pop("acceptance_propensity", None)  # computed at its first use
        fitted = getattr(other, f"fitted_{what}")
        setattr(other, f"fitted_{what}", replace(fitted, probability=expit(logit(fitted.probability) + by)))
        one = other.evaluate(policy)
        if view is None:
            return value_columns(one.rows, one.log.cost)
        score, slope = one._score
        return view_columns(view, one.rows, score, score_slope=slope)

    def values(by: float, what: str, view: View | None) -> np.ndarray:
        return moved(by, what, view).values

    for view in (None, *ALL_VIEWS):
        columns = moved(0.0, "propensity", view)
        assert np.abs(columns.values).max() > 0
        check_derivatives(columns, partial(values, view=view))
