"""Whether decision and label share something that their models miss, on logs of known truth."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import expit, k0
from scipy.stats import norm

from fairall.evaluate import checks
from fairall.evaluate.checks import Misfit
from fairall.evaluate.estimated.terms import Products, deviations
from fairall.evaluate.evaluation import Evaluation
from fairall.evaluate.log import DecisionLog
from fairall.evaluate.models import Models
from tests.evaluate.truths import KEYS, Drawn, drawn


@pytest.mark.parametrize("with_persons", [True, False])
def test_deviations_by_hand(with_persons: bool) -> None:
    draw = np.random.default_rng(0)
    residual, h, person = draw.normal(size=60), draw.normal(size=(2, 60)), draw.integers(20, size=60)
    products = pd.DataFrame((residual * (h - h.mean(1, keepdims=True))).T)
    sums = products.groupby(person).sum() if with_persons else products
    np.testing.assert_allclose(
        deviations(residual, h, person if with_persons else None), sums.sum() / np.sqrt((sums**2).sum())
    )


def test_products_by_hand() -> None:
    """Of two real inputs, one of them with heavy tails, and an indicator."""
    draw = np.random.default_rng(0)
    inputs = np.column_stack([draw.standard_t(1.5, 400), draw.normal(size=400), draw.random(400) < 0.3])
    products = Products().fit(inputs)
    values = np.vstack([*products.values(inputs)])
    assert values.shape == (2 * 20, 400)  # 1, 3 inputs, 6 products of two and 10 of three, of both kinds
    scale = np.subtract(*np.quantile(inputs, [0.75, 0.25], axis=0)) / 1.349
    scores = (inputs - np.median(inputs, axis=0))[:, :2] / scale[:2]
    for number, kind in enumerate((np.clip(scores, -2.6, 2.6), np.sign(scores))):
        (at,) = (k for k in range(20 * number, 20 * number + 20) if products.inputs_of(k, "xyz") == [*"xyz"])
        assert np.corrcoef(kind.prod(1) * inputs[:, 2], values[at])[0, 1] > 0.95
    np.testing.assert_array_equal(values[0], 1.0)
    wide = Products().fit(draw.normal(size=(50, 100)) * np.linspace(0.1, 1.0, 100))
    assert (wide.columns_ >= 50).all()
    assert len(wide.terms_) == 2 * (31 * 32 * 33 // 6)


@pytest.mark.parametrize("name", ["parity of three", "product of three", "irrelevant"])
def test_chosen_products_tell_the_target_of_other_people(name: str) -> None:
    one, other = (drawn(name, 1500, seed=seed) for seed in (0, 1))
    inputs = [people.table.filter(regex="^x").to_numpy() for people in (one, other)]
    products = Products().fit(inputs[0], one.table["granted"].to_numpy())
    columns = [products.transform(x) for x in inputs]
    slopes = np.linalg.lstsq(columns[0], one.table["granted"], rcond=None)[0]
    error = np.abs(columns[1] @ slopes - other.propensity).mean()
    assert error < 0.6 * np.abs(one.table["granted"].mean() - other.propensity).mean()


def misfit(one: Drawn, propensity: np.ndarray, outcome: np.ndarray, error: float = 0.01) -> Misfit | None:
    log = one.log()
    return checks.misfit(log, outcome, one.target * (log.accepted / propensity - 1.0), error, 0)


def without(one: Drawn) -> tuple[np.ndarray, np.ndarray]:
    """Models of decision and label that lack what they share."""
    x0, x1, male = one.table["x0"], one.table["x1"], one.table["sex"] == "m"
    return expit(0.2 + 0.6 * x0 + 0.3 * male).to_numpy(), expit(0.3 + 0.8 * x0 - 0.3 * x1).to_numpy()


@pytest.mark.parametrize("name", ["parity of three", "swing"])
def test_one_right_model_is_no_doubt(name: str) -> None:
    marks = []
    for seed in range(8):
        one = drawn(name, seed=seed)
        p, q = without(one)
        pairs = (one.propensity, one.chance), (p, one.chance), (one.propensity, q)
        marks += [misfit(one, *models) is not None for models in pairs]
    assert np.mean(marks) <= 2 / 24


@pytest.mark.parametrize("name", ["product of three", "parity of three", "corner", "drift", "swing"])
def test_what_both_models_miss_is_found_and_named(name: str) -> None:
    named = {"corner": "x0x1", "drift": "", "swing": ""}.get(name, "x0x1x2")
    shifts, biases = [], []
    for seed in range(10):
        one = drawn(name, seed=seed)
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
    mark, log = misfit(one, p, q), one.log()
    assert mark is not None
    h = np.vstack([*Products().fit(log.design).values(log.design)])
    residual = np.where(log.accepted, np.nan_to_num(log.label) - q, 0.0)
    both = deviations(one.target * (log.accepted / p - 1.0), h) * deviations(residual, h)
    beyond = 2 / np.pi * quad(k0, np.abs(both).max(), np.inf)[0]
    assert mark.p == pytest.approx(2 * len(h) * beyond, rel=1e-3, abs=1e-9)


def test_a_file_that_is_sorted_by_decision_or_label_has_no_order_of_time() -> None:
    one = drawn("logistic")
    table = one.table.assign(month=np.arange(1000) // 42)
    for keys in (["granted"], ["granted", "repaid"], ["repaid"], ["month", "granted", "repaid"]):
        moved = one.rows(table.reset_index().sort_values(keys, kind="stable").index.to_numpy())
        assert misfit(moved, moved.propensity, moved.chance) is None


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
    shuffled = checks._misses_over_time(residual, known, draw.permutation(weighted), None)
    assert min(test.p for test in shuffled) > 0.05


def test_a_mark_is_told_with_what_to_do() -> None:
    sentence = Misfit(["x0", "", "x1"], -0.0123, 1e-9).sentence
    assert sentence.startswith("the value is in doubt, by 1.2 per 100 people or more")
    assert "foretold by x0 and the group and x1 (p ≤ 1e-06)" in sentence
    one = drawn("drift")
    # With the time among the features, recorded propensities, or the decisions taken, there is no doubt.
    table = one.table.assign(month=np.arange(1000) // 50, p=one.propensity)
    for columns, keys, taken in (
        (["month", "p"], {}, False),
        (["p"], {}, False),
        (["month"], {"propensity": "p"}, False),
        (["month", "p"], {}, True),
    ):
        log = DecisionLog.of(table.drop(columns=columns), **(KEYS | keys))
        target = log.accepted.astype(float) if taken else one.target
        models = Models(log, propensity_model="logistic", outcome_model="logistic")
        evaluation = Evaluation(models, "policy", target, logged=taken)
        doubt = "".join(text for text in evaluation.warnings if "the order of the rows in time" in text)
        assert bool(doubt) == (evaluation.misfit is not None) == (len(columns) == 2 and not taken)
