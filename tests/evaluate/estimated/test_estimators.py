"""Estimators against their formulas written out, identities between them, and the guaranteed interval."""

from dataclasses import replace

import numpy as np
import pytest

from fairall.evaluate.estimated.estimates import Column, Sample
from fairall.evaluate.estimated.estimators import CLIP, ESTIMATORS, LABELS, People, guaranteed_interval

COST = 0.4


def made_up(n: int = 300, *, labelled: float = 1.0, amounts: bool = False) -> People:
    """People of a random policy, of whom some have weights above `CLIP`."""
    draw = np.random.default_rng(0)
    p = np.where(np.arange(n) % 10 == 0, 0.04, draw.uniform(0.2, 0.9, n)) * labelled
    revealed = np.where(np.arange(n) % 10 == 0, np.arange(n) % 20 == 0, draw.random(n) < p)
    label = (draw.random(n) < 0.7).astype(float)  # one that is not revealed has no effect
    weight, target = Column(revealed / p), draw.random(n)
    stake, even = (
        (draw.uniform(1, 3, n), draw.uniform(0.2, 0.7, n)) if amounts else (np.ones(n), np.full(n, COST))
    )
    return People(
        target, revealed, label, weight, weight * target, Column(draw.uniform(0.05, 0.95, n)), stake, even
    )


def value(people: People, estimator: str) -> float:
    return float(ESTIMATORS[estimator](people, Sample(len(people.target))).value)


def by_hand(people: People, estimator: str) -> float:
    """The formulas of the docstrings, one person after the other."""
    assert people.outcome is not None
    n, a_sum, kept_sum, weighted, direct, residual = len(people.target), 0.0, 0.0, 0.0, 0.0, 0.0
    for a, r, y, w, q, s, b in zip(
        people.target,
        people.revealed,
        people.label,
        people.weight.value,
        people.outcome.value,
        people.stake,
        people.break_even,
        strict=True,
    ):
        a_sum += a
        direct += a * s * (q - b)
        if r:
            kept_sum += a * w
            weighted += a * w * s * (y - b)
            residual += a * w * s * (y - q)
    return {
        "ips": weighted / n,
        "snips": a_sum / n * weighted / kept_sum,
        "dm": direct / n,
        "dr": (direct + residual) / n,
        "sndr": direct / n + a_sum / n * residual / kept_sum,
    }[estimator]


@pytest.mark.parametrize("amounts", [False, True])
@pytest.mark.parametrize("labelled", [1.0, 0.6])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_formulas(estimator: str, labelled: float, amounts: bool) -> None:
    people = made_up(labelled=labelled, amounts=amounts)
    assert value(people, estimator) == pytest.approx(by_hand(people, estimator), abs=1e-12)


def test_the_doubly_robust_estimators_are_read_first_and_all_differ() -> None:
    assert list(ESTIMATORS) == list(LABELS) == ["dr", "sndr", "ips", "snips", "dm"]
    assert len({round(value(made_up(), name), 6) for name in ESTIMATORS}) == 5


def test_self_normalised_estimates_do_not_depend_on_a_factor_of_the_propensities() -> None:
    people = made_up()
    scaled = replace(people, weight=people.weight * 3.0, kept=people.kept * 3.0)
    for name in ("snips", "sndr", "dm"):
        assert value(scaled, name) == pytest.approx(value(people, name), abs=1e-12)
    for name in ("ips", "dr"):
        assert abs(value(scaled, name) - value(people, name)) > 0.05


@pytest.mark.parametrize("wrong", ["propensities", "outcome", "neither"])
def test_doubly_robust_values_are_right_if_either_model_is(wrong: str) -> None:
    draw, n = np.random.default_rng(0), 200_000
    x = draw.random(n)
    p, q, target = 0.2 + 0.6 * x, 0.3 + 0.5 * x, x**2
    revealed, truth = draw.random(n) < p, np.mean(target * (q - COST))
    label = revealed * (draw.random(n) < q)
    weight = Column(revealed / (0.5 if wrong == "propensities" else p))
    outcome = Column(np.full(n, 0.5) if wrong == "outcome" else q)
    people = People(target, revealed, label, weight, weight * target, outcome, np.ones(n), np.full(n, COST))
    found = {name: abs(value(people, name) - truth) for name in ESTIMATORS}
    assert max(found["dr"], found["sndr"]) < 0.005
    assert (found["ips"] > 0.02) == (wrong == "propensities")
    assert (found["dm"] > 0.02) == (wrong == "outcome")


# The guaranteed interval


WORLDS = {  # propensities of the two kinds of people, and their probabilities of a positive label
    "moderate": ((0.5, 0.7), (0.8, 0.4)),
    "good and unlikely": ((0.02, 0.8), (0.95, 0.3)),
    "bad and unlikely": ((0.02, 0.8), (0.05, 0.9)),
}


def of_kinds(world: str, n: int, draw: np.random.Generator) -> tuple[People, float]:
    target, cost = np.array([0.9, 0.5]), 0.5
    propensity, positive = map(np.array, WORLDS[world])
    kind = draw.integers(2, size=n)
    revealed = draw.random(n) < propensity[kind]
    weight = Column(revealed / propensity[kind])
    label = revealed * (draw.random(n) < positive[kind])
    people = People(
        target[kind], revealed, label, weight, weight * target[kind], None, np.ones(n), np.full(n, cost)
    )
    return people, float(np.mean(target * (positive - cost)))


@pytest.mark.parametrize("n", [100, 30_000])
@pytest.mark.parametrize("world", WORLDS)
def test_the_guaranteed_interval_covers(world: str, n: int) -> None:
    """With weights of up to 45 too, where clipped IPS is far off."""
    draw, ends = np.random.default_rng(n), []
    for _ in range(60):
        people, truth = of_kinds(world, n, draw)
        ends.append(guaranteed_interval(people))
        clipped = np.minimum(people.kept.value, CLIP) * (people.label - 0.5)
    low, high = np.array(ends).T
    assert np.mean((low <= truth) & (truth <= high)) >= 0.95
    if n > 1000:
        assert np.mean(high - low) < (0.06 if world == "moderate" else 0.55)
        assert (abs(clipped.mean() - truth) > 0.1) == (world != "moderate")


def test_the_guaranteed_interval_shrinks_with_n_and_the_level_and_may_be_empty() -> None:
    def repeated(times: int, level: float = 0.95) -> tuple[float, float]:
        draw = np.random.default_rng(0)
        target, p = np.tile(draw.random((2, 200)), times)
        p = 0.2 + 0.7 * p
        revealed = np.tile(draw.random(200), times) < p
        label, one = revealed * (np.tile(draw.random(200), times) < 0.6), np.ones(200 * times)
        weight = Column(revealed / p)
        people = People(target, revealed, label, weight, weight * target, None, one, COST * one)
        return guaranteed_interval(people, level=level)

    lows, highs = np.array([repeated(times) for times in (1, 2, 5, 20, 100)]).T
    assert -COST <= lows.min() <= lows.max() < highs.min() <= highs.max() <= 1 - COST
    assert (np.diff(lows) >= 0).all()
    assert (np.diff(highs) <= 0).all()
    wide = repeated(100, level=0.999)
    assert wide[0] < lows[-1]
    assert wide[1] > highs[-1]
    # Propensities too small by a factor of 5: more were accepted than there are.
    one = np.ones(20_000)
    people = People(one, one > 0, one, Column(5 * one), Column(5 * one), None, one, COST * one)
    assert np.isnan(guaranteed_interval(people)).all()
