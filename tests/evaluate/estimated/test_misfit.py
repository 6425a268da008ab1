"""Whether decision and label share something that their models miss, on logs of known truth."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit, k0

from fairall.evaluate import checks, evaluate
from fairall.evaluate.checks import Misfit
from fairall.evaluate.estimated.terms import deviations, products
from fairall.evaluate.log import DecisionLog
from reproduction.population import COLUMNS, People
from reproduction.simulated_models import ROWS, people
from tests.evaluate.simulated import LOGISTIC

HARD = ["product of three", "parity of three", "corner", "drift", "c = 12"]


def test_deviations_by_hand() -> None:
    draw = np.random.default_rng(0)
    residual, h, person = draw.normal(size=60), draw.normal(size=(2, 60)), draw.integers(20, size=60)
    by_row = pd.DataFrame((residual * (h - h.mean(1, keepdims=True))).T)
    for sums, persons in ((by_row, None), (by_row.groupby(person).sum(), person)):
        found = deviations(residual, h, persons)
        np.testing.assert_allclose(found, sums.sum() / np.sqrt((sums**2).sum()))


def test_products_by_hand() -> None:
    """Of two real inputs, one of them with heavy tails, and an indicator."""
    draw = np.random.default_rng(0)
    inputs = np.column_stack([draw.standard_t(1.5, 400), draw.normal(size=400), draw.random(400) < 0.3])
    terms, values = (np.concatenate(parts) for parts in zip(*products(inputs), strict=True))
    assert values.shape == (2 * 20, 400)  # 1, 3 inputs, 6 products of two and 10 of three, of both kinds
    scale = np.subtract(*np.quantile(inputs, [0.75, 0.25], axis=0)) / 1.349
    scores = ((inputs - np.median(inputs, axis=0)) / scale)[:, :2]
    expected = inputs[:, 2] * np.stack([np.clip(scores, -2.6, 2.6), np.sign(scores)]).prod(2)
    of_three = values[(terms == [0, 1, 2]).all(1)]
    assert np.diag(np.corrcoef(expected, of_three)[:2, 2:]).min() > 0.95
    np.testing.assert_array_equal(values[(terms == -1).all(1)], 1.0)
    parts = products(draw.normal(size=(50, 100)) * np.linspace(0.1, 1.0, 100))
    wide = np.concatenate([terms for terms, _ in parts])
    assert np.isin(wide, [-1, *range(50, 100)]).all()
    assert len(wide) == 2 * (31 * 32 * 33 // 6)


def drawn(shared: str = "none", seed: int = 0) -> People:
    return people(np.random.default_rng(seed), ROWS, shared)


def misfit(one: People, propensity: np.ndarray, outcome: np.ndarray, error: float = 0.01) -> Misfit | None:
    log = DecisionLog.of(one.table, **COLUMNS)
    return checks.misfit(log, outcome, one.target * (log.accepted / propensity - 1.0), error, 0)


def without(one: People) -> tuple[np.ndarray, np.ndarray]:
    """Models of decision and label that lack what they share."""
    x0, x1, male = one.table["x0"], one.table["x1"], one.table["sex"] == "m"
    return expit(0.2 + 0.6 * x0 + 0.3 * male).to_numpy(), expit(0.3 + 0.8 * x0 - 0.3 * x1).to_numpy()


@pytest.mark.parametrize("name", ["parity of three", "c = 12"])
def test_one_right_model_is_no_doubt(name: str) -> None:
    marks = 0
    for seed in range(8):
        one = drawn(name, seed)
        p, q = without(one)
        for models in ((one.propensity, one.chance), (p, one.chance), (one.propensity, q)):
            marks += misfit(one, *models) is not None
    assert marks <= 2


@pytest.mark.parametrize("name", HARD)
def test_what_both_models_miss_is_found_and_named(name: str) -> None:
    """In a few logs; simulations say how often values in doubt are marked."""
    named = {"corner": "x0x1", "drift": "", "c = 12": ""}.get(name, "x0x1x2")
    shifts, biases = [], []
    for seed in range(10):
        one = drawn(name, seed)
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
    one = drawn("corner")
    p, q = without(one)
    mark, log = misfit(one, p, q), DecisionLog.of(one.table, **COLUMNS)
    assert mark is not None
    h = np.concatenate([values for _, values in products(log.design)])
    residual = np.where(log.accepted, np.nan_to_num(log.label) - q, 0.0)
    both = deviations(one.target * (log.accepted / p - 1.0), h) * deviations(residual, h)
    beyond = 2 / np.pi * quad(k0, np.abs(both).max(), np.inf)[0]
    assert mark.p == pytest.approx(2 * len(h) * beyond, rel=1e-3, abs=1e-9)


def test_a_mark_is_told_with_what_to_do() -> None:
    sentence = Misfit(["x0", "", "x1"], -0.0123, 1e-9).sentence
    assert sentence.startswith("the value is in doubt, by 1.2 per 100 people or more")
    assert "foretold by x0 and the group and x1 (p ≤ 1e-06)" in sentence
    one = drawn("drift")
    table = one.table.assign(month=np.arange(1000) // 50, p=one.propensity)
    # With the time among the features, recorded propensities, or the decisions taken, there is no doubt.
    for doubted, target, keys in (
        (True, one.target, {"drop": ["month", "p"]}),
        (False, one.target, {"drop": ["p"]}),
        (False, one.target, {"drop": ["month"], "propensity": "p"}),
        (False, None, {"drop": ["month", "p"]}),
    ):
        evaluation = evaluate(target, table, **COLUMNS, **LOGISTIC, **keys)
        told = "the order of the rows in time" in "".join(evaluation.warnings)
        assert told == (evaluation.misfit is not None) == doubted
