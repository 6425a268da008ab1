"""Thresholds of greatest utility under a bound, against a linear program and brute force."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import logit

from fairall.config.schema import BoundConfig, FairnessRule
from fairall.models.thresholds import Ranking, acceptance, fair_rates, fair_thresholds, price_of_gap
from tests.conftest import examples

RULES = FairnessRule.demographic_parity, FairnessRule.equal_opportunity


def best_by_linear_program(
    p: np.ndarray, group: np.ndarray, rule: FairnessRule, cost: float, slack: float, places: float
) -> float:
    """Greatest Σ π·(p − c) over π in [0, 1] with all gaps at most the slack, and Σ π at most the places."""
    counted = p if rule is FairnessRule.equal_opportunity else np.ones_like(p)
    rates = [np.where(group == g, counted, 0.0) / counted[group == g].sum() for g in np.unique(group)]
    gaps = [a - b for a in rates for b in rates if a is not b]
    solved = linprog(
        cost - p, A_ub=[*gaps, np.ones_like(p)], b_ub=[slack] * len(gaps) + [places], bounds=(0.0, 1.0)
    )
    assert solved.success
    return -solved.fun


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n_groups=st.integers(2, 4),
    rule=st.sampled_from(RULES),
    cost=st.floats(0.1, 0.9),
    slack=st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, 1.0)),
    share=st.one_of(st.just(1.0), st.floats(0.05, 1.0)),
    coarse=st.booleans(),
)
@example(seed=0, n_groups=4, rule=RULES[0], cost=0.5, slack=1.0, share=0.5, coarse=True)
def test_nothing_that_keeps_the_bound_earns_more(
    seed: int, n_groups: int, rule: FairnessRule, cost: float, slack: float, share: float, coarse: bool
) -> None:
    draw = np.random.default_rng(seed)
    group = np.concatenate([np.arange(n_groups), draw.integers(0, n_groups, 40)])
    p = draw.beta(1.0 + group, 2.0)
    p = np.clip(p.round(1) if coarse else p, 0.01, 0.99)
    log_odds, places = torch.from_numpy(logit(p)), share * len(p)
    chosen = fair_thresholds(
        log_odds, torch.from_numpy(group), n_groups, BoundConfig(rule, slack), cost, places=places
    )
    pi = acceptance(log_odds, chosen.threshold[group], chosen.tied_share[group]).numpy()
    assert (pi * (p - cost)).sum() == pytest.approx(
        best_by_linear_program(p, group, rule, cost, slack, places), abs=1e-5
    )
    assert pi.sum() <= places + 1e-5
    counted = p if rule is FairnessRule.equal_opportunity else np.ones_like(p)
    rates = [(pi * counted)[group == g].sum() / counted[group == g].sum() for g in range(n_groups)]
    assert max(rates) - min(rates) <= slack + 1e-6


def test_without_a_bound_everybody_has_the_threshold_c() -> None:
    log_odds, group = torch.linspace(-3.0, 3.0, 50), torch.arange(50) % 2
    chosen = fair_thresholds(log_odds, group, 2, BoundConfig(FairnessRule.demographic_parity, 1.0), 0.3)
    assert torch.allclose(chosen.threshold, torch.tensor(0.3, dtype=torch.float64).logit())
    assert (chosen.tied_share == 1.0).all()


def test_rates_stay_where_a_change_would_hardly_gain_anything() -> None:
    draw = np.random.default_rng(0)
    groups = [Ranking.of(draw.normal(shift, 1.0, 500), true_positives=False) for shift in (-0.5, 0.5)]
    (best, _), _ = fair_rates(groups, 0.5, 0.0)

    def lost(rate: float) -> float:
        return float(sum(np.subtract(*g.earned(np.array([best, rate]), 0.5)) for g in groups))

    for before in (0.0, best - 0.02, best + 0.02, 1.0):
        (rate, _), _ = fair_rates(groups, 0.5, 0.0, before=before, tolerance=1.0)
        assert lost(rate) <= 1.0
        assert abs(rate - before) <= abs(best - before)
        assert rate == before or lost(rate) == pytest.approx(1.0, abs=0.2)


def test_prices_bring_a_gap_to_the_slack_or_say_that_none_is_needed() -> None:
    def gap(price: float) -> float:
        return 0.6 - 0.3 * np.tanh(price) - 0.2 * price

    for slack in (0.0, 0.1, 0.5):
        prices, second = price_of_gap(gap, slack)
        assert (1 - second) * gap(float(prices[0])) + second * gap(float(prices[1])) == pytest.approx(slack)
        prices, _ = price_of_gap(lambda price: -gap(-price), slack)
        assert (prices < 0).all()
    assert price_of_gap(gap, 0.6)[0].tolist() == [0.0, 0.0]
