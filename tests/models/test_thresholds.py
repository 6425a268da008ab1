"""Thresholds of greatest utility under a bound, against a linear program."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import logit
from torch import Tensor

from fairall.config.schema import BoundConfig, FairnessRule, ModelConfig
from fairall.data.prepared import Amounts
from fairall.models.learner import FixedPolicy
from fairall.models.thresholds import ByGroup, Ranking, crossing, fair_rates
from fairall.runtime.randomness import SeedStreams
from tests.conftest import examples
from tests.models.conftest import most_within, rates_of, setting_of

PARITY, EQUAL = RULES = FairnessRule.demographic_parity, FairnessRule.equal_opportunity
NOTHING = SeedStreams([0], "none")
# Gain and loss are the second and the third feature.
AMOUNTS = Amounts(torch.tensor([[0.0, 1, 0, 0], [0, 0, 1, 0]], dtype=torch.float64), unit=1.0)


class Known(ByGroup, FixedPolicy):
    """Its log odds are the first feature."""

    def __init__(
        self, bound: BoundConfig, n_groups: int, cost: float, amounts: Amounts | None = None
    ) -> None:
        setting = replace(setting_of([0], features="xyz", n_groups=n_groups), cost=cost, amounts=amounts)
        super().__init__(ModelConfig(name="known"), setting, bound, 1)

    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return x[..., 0]


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n_groups=st.integers(2, 4),
    rule=st.sampled_from(RULES),
    cost=st.one_of(st.none(), st.floats(0.02, 0.98)),
    slack=st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, 1.0)),
    share=st.one_of(st.just(1.0), st.floats(0.05, 1.0)),
    coarse=st.booleans(),
)
@example(seed=0, n_groups=4, rule=PARITY, cost=0.5, slack=1.0, share=0.5, coarse=True)
@example(seed=0, n_groups=2, rule=EQUAL, cost=0.5, slack=0.0, share=0.3, coarse=True)
@example(seed=0, n_groups=3, rule=EQUAL, cost=None, slack=0.1, share=1.0, coarse=False)
@example(seed=0, n_groups=2, rule=PARITY, cost=None, slack=1.0, share=1.0, coarse=True)
@example(seed=0, n_groups=2, rule=PARITY, cost=None, slack=0.0, share=0.25, coarse=False)
def test_nothing_that_keeps_the_bound_earns_more(
    seed: int, n_groups: int, rule: FairnessRule, cost: float | None, slack: float, share: float, coarse: bool
) -> None:
    draw = np.random.default_rng(seed)
    group = np.concatenate([np.arange(n_groups), draw.integers(0, n_groups, 40)])
    p = draw.beta(1.0 + group, 2.0)
    p = np.clip(p.round(1) if coarse else p, 0.01, 0.99)
    if cost is None:  # by person
        gain, loss = draw.lognormal(size=(2, len(p)))
        # With few places the best order by true positive rates would depend on the price of a place.
        share = share if rule is PARITY else 1.0
        learner = Known(BoundConfig(rule, slack), n_groups, 0.5, AMOUNTS)
    else:
        gain, loss = np.full((2, len(p)), [[1.0 - cost], [cost]])
        learner = Known(BoundConfig(rule, slack), n_groups, cost)
    learner.share = share
    x = torch.from_numpy(np.stack([logit(p), gain, loss], -1))[None]
    s = torch.from_numpy(group)[None]
    s = 2 * s - 1 if n_groups == 2 else s
    learner.choose(learner.columns(x[..., 0], x), s)
    pi = learner.score(x, s, NOTHING)[0].numpy()
    worth, places = p * gain - (1.0 - p) * loss, share * len(p)
    rates = rates_of(p if rule is EQUAL else np.ones_like(p), group)
    assert pi @ worth == pytest.approx(most_within(worth, rates, slack, (np.ones_like(p), places)), abs=1e-5)
    assert pi.sum() <= places + 1e-5
    assert np.ptp(rates @ pi) <= slack + 1e-6
    if slack == share == 1.0:  # no bound
        assert (pi == (worth >= -1e-9)).all()
        assert (
            learner.threshold[0, 0].tolist()
            == [pytest.approx(0.0 if cost is None else logit(cost))] * n_groups
        )


def test_with_few_places_a_group_of_which_nobody_is_turned_away_has_the_price_of_the_others_too() -> None:
    learner = Known(BoundConfig(PARITY, 1.0), 2, 0.5)
    learner.share = 3 / 7
    x = torch.tensor([0.9, 0.2, 0.95, 0.8, 0.7, 0.6, 0.55]).double().logit().expand(3, -1).T[None]
    learner.choose(learner.columns(x[..., 0], x), torch.tensor([[-1, -1, 1, 1, 1, 1, 1]]))
    assert ((learner.threshold > logit(0.69)) & (learner.threshold < logit(0.81))).all()


def test_rates_stay_where_a_change_would_hardly_gain_anything() -> None:
    draw, of = np.random.default_rng(0), Known(BoundConfig(PARITY, 0.0), 2, 0.5)
    log_odds = torch.from_numpy(draw.normal([[-0.5], [0.5]], 1.0, (2, 500)))
    groups = [Ranking.of(own.numpy()) for own in of.columns(log_odds, log_odds)]
    (best, _), _ = fair_rates(groups, 0.0)

    def lost(rate: float) -> float:
        return -float(sum(np.diff(np.interp([best, rate], one.rate, one.earned))[0] for one in groups))

    for before in (0.0, best - 0.02, best + 0.02, 1.0):
        (rate, _), _ = fair_rates(groups, 0.0, before=before, tolerance=1.0)
        assert lost(rate) <= 1.0
        assert abs(rate - before) <= abs(best - before)
        assert rate == before or lost(rate) == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("limit", [0.0, 0.1, 0.5, 0.6])
def test_two_prices_bring_a_quantity_to_the_limit_or_are_0(limit: float) -> None:
    def quantity(price: float) -> float:
        return 0.6 - 0.5 * np.tanh(price) - 0.3 * price

    low, high, first = crossing(quantity, limit)
    assert first * quantity(low) + (1 - first) * quantity(high) == pytest.approx(limit)
    assert (high == 0.0) == (limit == 0.6)
