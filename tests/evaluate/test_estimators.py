"""Estimators against their formulas written out, and identities between them."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from fairall.evaluate import estimators
from fairall.evaluate.estimators import (
    CLIP,
    ESTIMATORS,
    LABELS,
    Rows,
    ValueSums,
    switch_threshold,
    value_columns,
)
from fairall.evaluate.intervals import Columns

COST = 0.4
WEIGHTED = ("ips", "clipped_ips", "snips", "dr", "sndr", "switch_dr")


def made_up(n: int = 300, *, labelled: float = 1.0, seed: int = 0) -> Rows:
    """People of whom some have weights above `CLIP`, and a random policy."""
    draw = np.random.default_rng(seed)
    acceptance = np.where(np.arange(n) % 10 == 0, 0.04, draw.uniform(0.2, 0.9, n))
    # Every second of the unlikely is revealed, so that some weights are clipped.
    revealed = np.where(acceptance == 0.04, np.arange(n) % 20 == 0, draw.random(n) < acceptance * labelled)
    return Rows(
        draw.random(n),
        acceptance * labelled,
        revealed,
        np.where(revealed, draw.random(n) < 0.7, 0).astype(float),
        draw.uniform(0.05, 0.95, n),
        labelled,
    )


def value(rows: Rows, estimator: str, cost: float = COST) -> float:
    return float(ESTIMATORS[estimator](ValueSums.of(value_columns(rows, cost).values.sum(0)), cost))


def by_hand(rows: Rows, estimator: str, tau: float) -> float:
    """The formulas of the docstrings, one person after the other."""
    n, a_sum, w_sum = len(rows.target), 0.0, 0.0
    weighted, clipped, direct, residual, switched = 0.0, 0.0, 0.0, 0.0, 0.0
    for a, p, r, y, q in zip(
        rows.target, rows.propensity, rows.revealed, rows.label, rows.outcome, strict=True
    ):
        a_sum += a
        direct += a * (q - COST)
        if r:
            w = a / p
            w_sum += w
            weighted += w * (y - COST)
            most = 10 / rows.labelled
            clipped += (w if w < most else most) * (y - COST)
            residual += w * (y - q)
            switched += w * (y - q) if w <= tau else 0.0
    return {
        "ips": weighted / n,
        "clipped_ips": clipped / n,
        "snips": a_sum / n * weighted / w_sum,
        "dm": direct / n,
        "dr": (direct + residual) / n,
        "sndr": direct / n + a_sum / n * residual / w_sum,
        "switch_dr": (direct + switched) / n,
    }[estimator]


@pytest.mark.parametrize("labelled", [1.0, 0.6])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_formulas(estimator: str, labelled: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimators, "switch_threshold", lambda rows, cost: 2.0)
    rows = made_up(labelled=labelled)
    assert (rows.weight > CLIP / labelled).sum() > 5, "or nothing is clipped"
    assert value(rows, estimator) == pytest.approx(by_hand(rows, estimator, 2.0), abs=1e-12)


def test_there_are_seven_estimators_with_labels_and_they_differ() -> None:
    assert list(ESTIMATORS) == ["ips", "clipped_ips", "snips", "dm", "dr", "sndr", "switch_dr"]
    assert set(LABELS) == set(ESTIMATORS)
    rows = made_up()
    found = [value(rows, name) for name in ESTIMATORS]
    assert len(np.unique(np.round(found, 6))) == 7


def test_accepting_everybody_from_a_log_that_did_is_the_mean() -> None:
    draw = np.random.default_rng(0)
    one = np.ones(200)
    rows = Rows(one, one, one > 0, (draw.random(200) < 0.6).astype(float), draw.uniform(0.1, 0.9, 200))
    for name in WEIGHTED:
        assert value(rows, name) == pytest.approx((rows.label - COST).mean(), abs=1e-12)
    assert value(rows, "dm") == pytest.approx((rows.outcome - COST).mean(), abs=1e-12)


def test_self_normalised_estimates_do_not_depend_on_a_factor_of_the_propensities() -> None:
    rows = made_up()
    scaled = replace(rows, propensity=0.3 * rows.propensity)
    for name in ("snips", "sndr", "dm"):
        assert value(scaled, name) == pytest.approx(value(rows, name), abs=1e-12)
    for name in ("ips", "dr"):
        assert abs(value(scaled, name) - value(rows, name)) > 0.05


def test_doubly_robust_is_ips_or_the_direct_method_at_the_ends() -> None:
    rows = made_up()
    # A rejection is worth 0 and an acceptance −c for certain, so that IPS of the gain alone remains.
    nothing = replace(rows, outcome=np.zeros_like(rows.outcome))
    assert value(nothing, "dr", cost=0.0) == pytest.approx(value(nothing, "ips", cost=0.0), abs=1e-12)
    assert value(nothing, "sndr", cost=0.0) == pytest.approx(value(nothing, "snips", cost=0.0), abs=1e-12)
    exact = replace(rows, outcome=np.where(rows.revealed, rows.label, rows.outcome))
    for name in ("dr", "sndr", "switch_dr"):
        assert value(exact, name) == pytest.approx(value(exact, "dm"), abs=1e-12)


def test_clipping_matters_only_above_the_limit() -> None:
    rows = made_up()
    assert abs(value(rows, "clipped_ips") - value(rows, "ips")) > 0.01
    light = replace(rows, propensity=np.maximum(rows.propensity, 0.2))
    assert light.weight.max() < CLIP
    assert value(light, "clipped_ips") == pytest.approx(value(light, "ips"), abs=1e-12)


def test_unrevealed_labels_and_propensities_of_the_rejected_have_no_effect() -> None:
    rows = made_up()
    other = replace(
        rows,
        propensity=np.where(rows.revealed, rows.propensity, np.nan),
        label=np.where(rows.revealed, rows.label, 1.0),
    )
    for name in ESTIMATORS:
        if name != "switch_dr":  # whose threshold counts the people with a propensity
            assert value(other, name) == pytest.approx(value(rows, name), abs=1e-12)
    assert np.isfinite(value(other, "switch_dr"))


@pytest.mark.parametrize("labelled", [1.0, 0.5])
def test_the_logged_decisions_are_worth_what_was_observed(labelled: float) -> None:
    """Whatever the propensities are; labels that are missing are like the others."""
    rows = made_up(labelled=labelled)
    accepted = rows.revealed.copy()
    if labelled < 1:
        hidden = np.flatnonzero(~rows.revealed)[: rows.revealed.sum()]
        accepted[hidden] = True
    logged = replace(
        rows, target=accepted.astype(float), labelled=rows.revealed.sum() / accepted.sum(), logged=True
    )
    assert logged.labelled == labelled
    observed = accepted.mean() * (rows.label[rows.revealed] - COST).mean()
    for name in ("ips", "clipped_ips", "snips"):
        assert value(logged, name) == pytest.approx(observed, abs=1e-12)
        if labelled == 1:
            assert observed == pytest.approx((rows.revealed * (rows.label - COST)).mean(), abs=1e-12)
    if labelled == 1:
        for name in WEIGHTED:
            assert value(logged, name) == pytest.approx(observed, abs=1e-12)
        assert abs(value(logged, "dm") - observed) > 0.01


def test_labels_of_few_of_the_accepted_are_not_clipped() -> None:
    rows = made_up()
    few = np.cumsum(rows.revealed) * rows.revealed
    accepted = np.arange(300) < 240
    logged = replace(rows, target=accepted.astype(float), revealed=(few > 0) & (few <= 12), labelled=0.05)
    logged = replace(logged, logged=True)
    assert value(logged, "clipped_ips") == pytest.approx(value(logged, "ips"), abs=1e-12)


def test_a_policy_that_accepts_nobody_is_worth_nothing() -> None:
    rows = made_up()
    nobody = replace(rows, target=np.zeros_like(rows.target))
    for name in ESTIMATORS:
        assert value(nobody, name) == 0.0


def test_formulas_take_sums_with_leading_axes() -> None:
    columns = value_columns(made_up(), COST).values
    sums = np.stack([columns[:150].sum(0), columns[150:].sum(0), columns.sum(0)]).reshape(3, 1, -1)
    for name, function in ESTIMATORS.items():
        found = function(ValueSums.of(sums), COST)
        assert found.shape == (3, 1)
        assert found[2, 0] == pytest.approx(value(made_up(), name), abs=1e-12)


def test_uniform_weights_are_never_switched_off() -> None:
    """The same weight for all, with propensities of which some have rounded inverses."""
    rows = made_up()
    for p in np.linspace(0.05, 0.95, 19):
        for a in (0.35, 0.7, 1.0):
            uniform = replace(rows, target=np.full(300, a), propensity=np.full(300, p))
            assert switch_threshold(uniform, COST) == np.inf
            assert value(uniform, "switch_dr") == pytest.approx(value(uniform, "dr"), abs=1e-12)
    assert switch_threshold(replace(rows, logged=True), COST) == np.inf


def test_the_threshold_trades_variance_for_bias() -> None:
    """Few people with extreme weights are left to the direct method, moderate weights are not."""
    draw = np.random.default_rng(1)
    n = 4000
    rare = np.arange(n) % 200 == 0
    p = np.where(rare, 0.001, 0.5)
    revealed = np.where(rare, np.arange(n) % 400 == 0, draw.random(n) < 0.5)
    rows = Rows(np.ones(n), p, revealed, revealed * (draw.random(n) < 0.5), np.full(n, 0.5))
    assert 2.0 <= switch_threshold(rows, COST) < 1000.0
    assert value(rows, "switch_dr") == pytest.approx(by_hand(rows, "switch_dr", 2.0), abs=1e-12)
    assert abs(value(rows, "dr") - value(rows, "switch_dr")) > 0.1
    moderate = replace(rows, propensity=np.where(rare, 0.4, 0.5))
    assert switch_threshold(moderate, COST) == np.inf


def test_the_threshold_counts_people_without_a_recorded_propensity() -> None:
    """Most people with a weight above 2 are rejected, so that the accepted alone would seem to be few."""
    draw = np.random.default_rng(2)
    n = 20_000
    p = np.where(draw.random(n) < 0.5, 0.1, 0.9)
    revealed = draw.random(n) < p
    rows = Rows(np.ones(n), p, revealed, revealed * (draw.random(n) < 0.5), np.full(n, 0.5))
    assert switch_threshold(rows, COST) == np.inf
    assert switch_threshold(replace(rows, propensity=np.where(revealed, p, np.nan)), COST) == np.inf


@pytest.mark.parametrize("logged", [False, True])
@pytest.mark.parametrize("labelled", [1.0, 0.6])
def test_derivatives_of_the_columns(labelled: float, logged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Central differences in the log odds of the acceptance propensity and of the outcome model."""
    monkeypatch.setattr(estimators, "switch_threshold", lambda rows, cost: 2.0)
    rows = replace(made_up(labelled=labelled), logged=logged)
    columns = value_columns(rows, COST)

    def moved(by: float, what: str) -> np.ndarray:
        return value_columns(shifted(rows, by, what), COST).values

    check_derivatives(columns, moved)


def shifted(rows: Rows, by: float, what: str) -> Rows:
    """Rows with log odds of the propensity of acceptance, or of the outcome, increased."""
    odds = {"propensity": rows.propensity / rows.labelled, "outcome": rows.outcome}[what]
    new = expit(np.log(odds / (1 - odds)) + by)
    return replace(rows, **{what: new * rows.labelled if what == "propensity" else new})


def check_derivatives(
    columns: Columns, moved: Callable[[float, str], np.ndarray], step: float = 1e-5
) -> None:
    """Compare derivatives with central differences of `moved(step, what)`, shape (N, K)."""
    for what, derivative in (("propensity", columns.by_propensity), ("outcome", columns.by_outcome)):
        numeric = (moved(step, what) - moved(-step, what)) / (2 * step)
        if derivative is None:
            assert np.abs(numeric).max() == 0
        else:
            np.testing.assert_allclose(derivative, numeric, atol=1e-6, err_msg=what)
