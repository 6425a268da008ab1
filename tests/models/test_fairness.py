"""Thresholds on top of methods: what they are chosen from, and what they reach."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit
from torch import Tensor

from fairall.config.schema import FairnessConfig, FairnessRule, ModelConfig
from fairall.data.people import Decided
from fairall.models.fairness import BlindThresholds, FairThresholds
from fairall.models.learner import DecisionRule, Learner, Setting
from fairall.models.prices import TEMPERATURE
from fairall.runtime.randomness import SeedStreams
from tests.conftest import examples, no_cache, training_of
from tests.models.conftest import most_within, rates_of, setting_of

RULES = FairnessRule.demographic_parity, FairnessRule.equal_opportunity
PARITY = FairnessConfig(rule=RULES[0], slack=0.0, blind=False, window=4096)
ANY = SeedStreams([0], "any")


class Known(Learner):
    """Its log odds are the first feature, and 0.1 more after each update if it `moves`."""

    moved: Tensor

    def __init__(self, setting: Setting, *, moves: bool = False) -> None:
        super().__init__(ModelConfig(name="known"), setting)
        self.moves = moves
        self.register_buffer("moved", torch.zeros(()))

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        return {}

    def update(self, decided: Decided) -> None:
        self.moved = self.moved + 0.1 * self.moves
        self.shown = decided.s

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return torch.sigmoid(x[..., 0] + self.moved)


def people(n: int, start: int, n_groups: int = 2) -> Decided:
    """Rejected people whose log odds and second feature are the greater the greater their group's number."""
    draw = torch.Generator().manual_seed(start)
    group = torch.randint(n_groups, (1, n), generator=draw)
    x = torch.randn(1, n, 2, generator=draw) + (2.0 - 0.4 * n_groups) * group.unsqueeze(-1)
    nothing = torch.zeros(1, n)
    s = group if n_groups > 2 else 2 * group - 1
    return Decided(x, s.float(), nothing, nothing > 0, nothing)


def fed(learner: FairThresholds, steps: range) -> FairThresholds:
    """The learner after updates on 64 people each."""
    for step in steps:
        learner.update(people(64, step))
    return learner


def gap(learner: Learner, seen: Decided, rule: FairnessRule = PARITY.rule) -> float:
    """Greatest distance of the rates of two groups, of the first seed."""
    pi = learner.propensity(seen.x, seen.s, SeedStreams(learner.setting.seeds, "any"))[0]
    p = learner.log_odds(seen.x, seen.s, ANY)[0].sigmoid()
    counted = p if rule is FairnessRule.equal_opportunity else torch.ones_like(p)
    return float(np.ptp(rates_of(counted.numpy(), seen.s[0].numpy()) @ pi.numpy()))


@pytest.mark.parametrize("slack", [0.0, 0.1, 0.25])
def test_rejected_people_alone_are_enough_to_bring_the_gap_to_the_slack(slack: float) -> None:
    learner = fed(FairThresholds(replace(PARITY, slack=slack), Known(setting_of([0]))), range(60))
    assert gap(learner, learner.seen.rows()) == pytest.approx(slack, abs=0.01)
    # 0.5 / √(number of a group in the window) is 0.012.
    assert gap(learner, people(20_000, 1000)) == pytest.approx(slack, abs=0.05)


def test_estimates_of_the_window_are_those_of_the_learner_which_is_asked_only_where_it_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = Known(setting_of([0]), moves=True)
    learner, asked, log_odds = FairThresholds(PARITY, known), [], known.log_odds

    def counted(x: Tensor, *more: Any) -> Tensor:
        asked.append(x.shape[1])
        return log_odds(x, *more)

    monkeypatch.setattr(known, "log_odds", counted)
    thresholds = set()
    for t, known.unchanged in enumerate((False, True, True, False)):
        thresholds.add(str(fed(learner, range(t, t + 1)).threshold))
    assert asked == [64, 64, 64, 64, 64, 256]
    assert len(thresholds) == 4
    seen: Any = learner.seen.rows()
    torch.testing.assert_close(seen.log_odds.squeeze(-1), log_odds(seen.x, seen.s, ANY))


def test_the_window_begins_with_the_pool() -> None:
    training = training_of("model=greedy", "dataset=credit", "fairness=demographic_parity", "seeds=2")
    learner, data = training.learner, training.data
    assert isinstance(learner, FairThresholds)
    learner.pretrain(data, no_cache(), lambda **_: None)
    seen = learner.seen.rows()
    assert torch.equal(seen.x, data.pool.x.expand(2, -1, -1))
    assert torch.equal(seen.s, data.pool.s.expand(2, -1))
    assert not seen.accepted.any()
    learner.choose_from_seen()
    assert gap(learner, seen) == pytest.approx(0.0, abs=0.02)


def test_places_are_those_of_the_world_and_a_small_group_is_told_of() -> None:
    words = "model=ensemble dataset=credit world=capacity world.capacity.share=0.25 fairness.window=50"
    training = training_of(*words.split(), "fairness=demographic_parity")
    assert isinstance(training.learner, FairThresholds)
    assert training.learner.share == 0.25
    notes = training.learner.notes(training.data)
    assert any("rests on about" in note and "fairness.window=50" in note for note in notes)


class Told(BlindThresholds):
    """It is told p(S = g | x) of the kind of a person, the first feature."""

    of_groups: Tensor

    def members(self, x: Tensor, *, applicants: bool = True) -> Tensor:
        return self.of_groups[x[..., 0].long()]


@settings(max_examples=examples(60), deadline=None)
@given(
    seed=st.integers(0, 2**31),
    n_kinds=st.sampled_from([12, 60, 300]),
    n_groups=st.sampled_from([2, 4]),
    rule=st.sampled_from(RULES),
    slack=st.sampled_from([1e-9, 0.1, 1.0]),  # a gap of 1e-16 is none
    share=st.sampled_from([0.1, 0.3, 1.0]),
    apart=st.sampled_from([0.1, 1.0, 10.0]),
    coarse=st.booleans(),
)
def test_no_decisions_without_s_that_keep_the_bound_earn_more(
    seed: int, n_kinds: int, n_groups: int, rule: Any, slack: float, share: float, apart: float, coarse: bool
) -> None:
    """People of some kinds, of which p(ỹ = 1) and the shares of the groups are known."""
    draw = np.random.default_rng(seed)
    kind = np.append(np.arange(n_kinds), draw.integers(0, n_kinds, 400))
    of_kind = draw.dirichlet(np.full(n_groups, apart), n_kinds)
    group = (draw.uniform(size=(len(kind), 1)) > of_kind[kind].cumsum(1)).sum(1)
    group[:n_groups] = np.arange(n_groups)  # everybody is there
    kinds = np.eye(n_kinds)[kind]
    q = np.eye(n_groups)[group].T @ kinds / kinds.sum(0)
    p = (draw.beta(2.0, 2.0, n_kinds) + 0.4 * (q[0] - 0.5)).clip(0.01, 0.99)
    p = p.round(1).clip(0.01, 0.99) if coarse else p
    cost = draw.choice([0.2, 0.5, 0.8])
    own = setting_of([0], f"cost.value={cost}", n_groups=n_groups)
    blind = Told(FairnessConfig(rule=rule, slack=slack, blind=True, window=1), Known(own), share)
    blind.of_groups = torch.from_numpy(q[:-1].T)
    x = torch.from_numpy(np.stack([kind, kind], -1)).float()[None]
    log_odds, s = torch.from_numpy(logit(p))[kind][None], torch.from_numpy(group)[None]
    s = s if n_groups > 2 else 2 * s - 1
    blind.choose(blind.with_members(log_odds, x, blind.members(x)), s)
    pi, worth = blind.accepted(log_odds, x, s)[0].numpy(), p[kind] - cost
    rates = rates_of((p if rule is FairnessRule.equal_opportunity else 0 * p + 1)[kind], group)
    n, pays = len(kind), worth >= 0.0
    binds = np.ptp(rates @ pays) > slack or pays.mean() > share
    assert blind.price.any() == binds
    most = most_within(worth @ kinds, rates @ kinds, slack, (kinds.sum(0), n * share))
    assert most - n * TEMPERATURE <= pi @ worth <= most + 1e-4
    if binds:  # else who earns about nothing is accepted with a probability
        assert np.ptp(rates @ pi) <= slack + 1e-5
        assert pi.mean() <= share + 1e-6


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n_groups", [2, 3])
def test_rates_among_new_people_are_equal_by_features_that_tell_the_group_in_part(
    rule: FairnessRule, n_groups: int
) -> None:
    bound = FairnessConfig(rule=rule, slack=0.0, blind=True, window=4000)
    known, new = Known(setting_of([0], n_groups=n_groups)), people(20_000, 1, n_groups)
    known.rule = DecisionRule(drawn=False)
    learner = BlindThresholds(bound, known)
    learner.update(people(4000, 0, n_groups))
    assert not known.shown.any()
    assert gap(known, new, rule) > 0.15
    assert gap(learner, new, rule) < 0.04
