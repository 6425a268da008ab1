"""Whether decision and label share something that their models miss, on logs of known truth."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit, k0
from scipy.stats import norm

from fairall.evaluate import checks
from fairall.evaluate.checks import Misfit
from fairall.evaluate.estimated.terms import deviations, products
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.models import Models
from reproduction.simulated_models import COLUMNS, ROWS, SHARED, People, Shift, none, people, sine

HARD = {name: shift for name, shift in SHARED.items() if name != "parity of two"}
HARD["swing"] = partial(sine, cycles=12)


@pytest.mark.parametrize("with_persons", [True, False])
def test_deviations_by_hand(with_persons: bool) -> None:
    draw = np.random.default_rng(0)
    residual, h, person = draw.normal(size=60), draw.normal(size=(2, 60)), draw.integers(20, size=60)
    by_row = pd.DataFrame((residual * (h - h.mean(1, keepdims=True))).T)
    sums = by_row.groupby(person).sum() if with_persons else by_row
    np.testing.assert_allclose(
        deviations(residual, h, person if with_persons else None), sums.sum() / np.sqrt((sums**2).sum())
    )


def test_products_by_hand() -> None:
    """Of two real inputs, one of them with heavy tails, and an indicator."""
    draw = np.random.default_rng(0)
    inputs = np.column_stack([draw.standard_t(1.5, 400), draw.normal(size=400), draw.random(400) < 0.3])
    terms, values = (np.concatenate(parts) for parts in zip(*products(inputs), strict=True))
    assert values.shape == (2 * 20, 400)  # 1, 3 inputs, 6 products of two and 10 of three, of both kinds
    scale = np.subtract(*np.quantile(inputs, [0.75, 0.25], axis=0)) / 1.349
    scores = (inputs - np.median(inputs, axis=0))[:, :2] / scale[:2]
    at = np.flatnonzero((terms == [0, 1, 2]).all(1))
    for number, kind in zip(at, (np.clip(scores, -2.6, 2.6), np.sign(scores)), strict=True):
        assert np.corrcoef(kind.prod(1) * inputs[:, 2], values[number])[0, 1] > 0.95
    np.testing.assert_array_equal(values[(terms == -1).all(1)], 1.0)
    wide = np.concatenate(
        [terms for terms, _ in products(draw.normal(size=(50, 100)) * np.linspace(0.1, 1.0, 100))]
    )
    assert np.isin(wide, [-1, *range(50, 100)]).all()
    assert len(wide) == 2 * (31 * 32 * 33 // 6)


def drawn(shared: Shift = none, seed: int = 0) -> People:
    return people(np.random.default_rng(seed), ROWS, shared)


def misfit(
    one: People, propensity: np.ndarray, outcome: np.ndarray, error: float = 0.01, rows: Any = slice(None)
) -> Misfit | None:
    log = DecisionLog.of(one.table, **COLUMNS).rows(np.arange(ROWS)[rows])
    imbalance = one.target[rows] * (log.accepted / propensity[rows] - 1.0)
    return checks.misfit(log, outcome[rows], imbalance, error, 0)


def without(one: People) -> tuple[np.ndarray, np.ndarray]:
    """Models of decision and label that lack what they share."""
    x0, x1, male = one.table["x0"], one.table["x1"], one.table["sex"] == "m"
    return expit(0.2 + 0.6 * x0 + 0.3 * male).to_numpy(), expit(0.3 + 0.8 * x0 - 0.3 * x1).to_numpy()


@pytest.mark.parametrize("name", ["parity of three", "swing"])
def test_one_right_model_is_no_doubt(name: str) -> None:
    marks = []
    for seed in range(8):
        one = drawn(HARD[name], seed)
        p, q = without(one)
        pairs = (one.propensity, one.chance), (p, one.chance), (one.propensity, q)
        marks += [misfit(one, *models) is not None for models in pairs]
    assert np.mean(marks) <= 2 / 24


@pytest.mark.parametrize("name", HARD)
def test_what_both_models_miss_is_found_and_named(name: str) -> None:
    named = {"corner": "x0x1", "drift": "", "swing": ""}.get(name, "x0x1x2")
    shifts, biases = [], []
    for seed in range(10):
        one = drawn(HARD[name], seed)
        p, q = without(one)
        mark = misfit(one, p, q)
        if mark is not None:
            assert "".join(sorted(mark.inputs)) in named if named else mark.inputs == []
            shifts.append(mark.shift)
            # What the models lack moves the doubly robust value by E[a (π/π̂ − 1)(q − q̂)].
            biases.append(np.mean(one.target * (one.propensity / p - 1) * (one.chance - q)))
    assert len(shifts) >= 8
    # One function of the inputs holds a part of it.
    assert 0.2 * np.mean(biases) < np.mean(shifts) < 1.2 * np.mean(biases)
    # It matters less than the error of a small log.
    assert misfit(one, p, q, error=1.0) is None


def test_p_is_that_of_a_product_of_normal_numbers() -> None:
    one = drawn(SHARED["corner"])
    p, q = without(one)
    mark, log = misfit(one, p, q), DecisionLog.of(one.table, **COLUMNS)
    assert mark is not None
    h = np.concatenate([values for _, values in products(log.design)])
    residual = np.where(log.accepted, np.nan_to_num(log.label) - q, 0.0)
    both = deviations(one.target * (log.accepted / p - 1.0), h) * deviations(residual, h)
    beyond = 2 / np.pi * quad(k0, np.abs(both).max(), np.inf)[0]
    assert mark.p == pytest.approx(2 * len(h) * beyond, rel=1e-3, abs=1e-9)


def test_a_file_that_is_sorted_by_decision_or_label_has_no_order_of_time() -> None:
    one = drawn()
    table = one.table.assign(month=np.arange(1000) // 42)
    for keys in (["granted"], ["granted", "repaid"], ["repaid"], ["month", "granted", "repaid"]):
        rows = table.sort_values(keys, kind="stable").index.to_numpy()
        assert misfit(one, one.propensity, one.chance, rows=rows) is None


def test_p_of_the_order_of_rows_by_hand() -> None:
    """Of pairs of rows, in windows of 9 rows and more."""
    draw = np.random.default_rng(0)
    n, known = 400, draw.random(400) < 0.6
    course = np.sin(np.arange(n) / 20)
    residual = np.where(known, draw.normal(size=n) + course, 0.0)
    weighted = draw.normal(size=n) + course
    for half, test in zip(
        (4, 16, 64), checks._misses_over_time(residual, known, weighted, None), strict=True
    ):
        near = (np.abs(np.arange(n)[:, None] - np.arange(n)) <= half).astype(float)
        np.fill_diagonal(near, 0.0)
        near /= np.maximum(near @ known, 1.0)[:, None]
        miss, weights = near @ residual, weighted @ near
        pairs = (weighted, miss - miss.mean()), (residual, weights - weights.mean())
        z = min(abs(one @ other) / np.sqrt(one**2 @ other**2) for one, other in pairs)
        expected = 3 * 2 * norm.sf(z), weighted @ (miss - miss.mean()) / n
        assert (test.p, test.shift) == pytest.approx(expected)


def test_a_mark_is_told_with_what_to_do() -> None:
    sentence = Misfit(["x0", "", "x1"], -0.0123, 1e-9).sentence
    assert sentence.startswith("the value is in doubt, by 1.2 per 100 people or more")
    assert "foretold by x0 and the group and x1 (p ≤ 1e-06)" in sentence
    one = drawn(SHARED["drift"])
    # With the time among the features, recorded propensities, or the decisions taken, there is no doubt.
    table = one.table.assign(month=np.arange(1000) // 50, p=one.propensity)
    for columns, keys, taken in (
        (["month", "p"], {}, False),
        (["p"], {}, False),
        (["month"], {"propensity": "p"}, False),
        (["month", "p"], {}, True),
    ):
        log = DecisionLog.of(table.drop(columns=columns), **(COLUMNS | keys))
        target = log.accepted.astype(float) if taken else one.target
        models = Models(log, propensity_model="logistic", outcome_model="logistic")
        evaluation = Evaluation(models, "policy", target, logged=taken)
        doubt = "".join(text for text in evaluation.warnings if "the order of the rows in time" in text)
        assert bool(doubt) == (evaluation.misfit is not None) == (len(columns) == 2 and not taken)
