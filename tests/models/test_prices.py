"""Prices of groups and places, against a linear program."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import expit

from fairall.models.prices import TEMPERATURE, fair_prices
from tests.conftest import examples
from tests.models.conftest import most_within


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n=st.sampled_from([12, 60, 300]),
    n_groups=st.sampled_from([2, 4]),
    true_positives=st.booleans(),
    slack=st.sampled_from([1e-9, 0.1, 1.0]),  # a gap of 1e-16 is none
    places=st.sampled_from([0.1, 0.3, 1.0]),
    apart=st.sampled_from([0.1, 1.0, 10.0]),
    coarse=st.booleans(),
)
@example(seed=0, n=60, n_groups=2, true_positives=True, slack=0.0, places=1.0, apart=10.0, coarse=False).via(
    "x that hardly tells the group"
)
def test_nothing_that_keeps_the_bounds_earns_more(
    seed: int,
    n: int,
    n_groups: int,
    true_positives: bool,
    slack: float,
    places: float,
    apart: float,
    coarse: bool,
) -> None:
    draw = np.random.default_rng(seed)
    of_groups = draw.dirichlet(np.full(n_groups, apart), n)
    p = (draw.beta(2.0, 2.0, n) + 0.5 * (of_groups[:, 0] - 0.5)).clip(0.01, 0.99)
    if coarse:  # people of few kinds
        p, of_groups = p.round(1), of_groups.round(1) + 0.05
        of_groups /= of_groups.sum(1, keepdims=True)
    earned, one = p - draw.choice([0.2, 0.5, 0.8]), np.ones(n)
    counted = np.column_stack([of_groups * (p if true_positives else one)[:, None], one])
    price = fair_prices(earned, counted, slack, places)
    beyond = earned - counted @ price
    pi = expit(beyond / TEMPERATURE) if price.any() else (beyond >= 0.0).astype(float)
    *rates, of_places = (counted / counted.sum(0)).T
    assert np.ptp(np.array(rates) @ pi) <= slack + 1e-6
    assert of_places @ pi <= places + 1e-6
    most = most_within(earned / n, np.array(rates), slack, (of_places, places))
    assert most - TEMPERATURE <= pi @ earned / n <= most + 1e-6
    assert price.any() == (
        np.ptp(np.array(rates) @ (earned >= 0.0)) > slack or (earned >= 0.0).mean() > places
    )


@pytest.mark.parametrize("n", [100, 20_000])
def test_groups_that_nothing_tells_have_no_price(n: int) -> None:
    draw = np.random.default_rng(n)
    counted = np.column_stack([np.full((n, 2), 0.5), np.ones(n)])
    assert not fair_prices(draw.uniform(-0.5, 0.5, n), counted, slack=0.0).any()
