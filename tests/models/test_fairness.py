"""Thresholds on top of methods: what they are chosen from, and what they reach."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import logit
from torch import Tensor

from fairall import run
from fairall.config.compose import compose_config
from fairall.config.schema import FairnessConfig, FairnessRule, ModelConfig
from fairall.data.people import Decided
from fairall.models.fairness import BlindThresholds, FairThresholds, Scored
from fairall.models.learner import Learner, Setting
from fairall.models.prices import TEMPERATURE
from fairall.runtime.randomness import SeedStreams
from tests.conftest import MakeSetting, no_cache, training_of
from tests.models.conftest import most_within, rates_of

pytestmark = pytest.mark.usefixtures("undrawn")

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

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return torch.sigmoid(x[..., 0] + self.moved)


def people(n: int, start: int) -> Decided:
    """People of whom S = +1 have greater log odds by 1.5, all rejected."""
    draw = torch.Generator().manual_seed(start)
    s = 2.0 * (torch.rand(1, n, generator=draw) < 0.7) - 1.0
    x = torch.randn(1, n, 2, generator=draw) + 0.75 * s.unsqueeze(-1) * torch.tensor([1.0, 0.0])
    nothing = torch.zeros_like(s)
    return Decided(x, s, nothing, nothing > 0, nothing)


def fed(learner: FairThresholds, steps: range) -> FairThresholds:
    """The learner after updates on 64 people each."""
    for step in steps:
        learner.update(people(64, step))
    return learner


def gap(learner: Learner, x: Tensor, s: Tensor) -> float:
    """Acceptance rate of S = +1 less that of S = −1, of the first seed."""
    pi = learner.propensity(x, s, SeedStreams(learner.setting.seeds, "any"))[0]
    return (pi[s[0] > 0].mean() - pi[s[0] < 0].mean()).item()


@pytest.mark.parametrize("slack", [0.0, 0.1, 0.25])
def test_rejected_people_alone_are_enough_to_bring_the_gap_to_the_slack(
    slack: float, two_features: MakeSetting
) -> None:
    learner = fed(FairThresholds(replace(PARITY, slack=slack), Known(two_features([0]))), range(60))
    new, seen = people(20_000, 1000), learner.seen.rows()
    assert gap(learner, seen.x, seen.s) == pytest.approx(slack, abs=0.01)
    # 0.5 / √(number of S = −1 in the window) is 0.015.
    assert gap(learner, new.x, new.s) == pytest.approx(slack, abs=0.05)


def test_estimates_of_the_window_are_those_of_the_learner_which_is_asked_only_where_it_has_changed(
    two_features: MakeSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Known(two_features([0]), moves=True)
    learner, asked, log_odds = FairThresholds(PARITY, known), [], known.log_odds

    def counted(x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        asked.append(x.shape[1])
        return log_odds(x, s, streams)

    monkeypatch.setattr(known, "log_odds", counted)
    thresholds = set()
    for t, known.unchanged in enumerate((False, True, True, False)):
        fed(learner, range(t, t + 1))
        thresholds.add(tuple(learner.threshold.flatten().tolist()))
    assert asked == [64, 64, 64, 64, 64, 256]
    assert len(thresholds) == 4
    seen = learner.seen.rows()
    assert isinstance(seen, Scored)
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
    assert gap(learner, seen.x, seen.s) == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize(
    "method",
    [
        *"plot consequential unfairlog fairall_II dcem".split(),
        *(
            pytest.param(method, marks=pytest.mark.whole)
            for method in "adopt neural_ucb sellf_one_step multiple_imputation".split()
        ),
    ],
)
def test_other_methods_are_fairer_with_thresholds_than_without(method: str, tmp_path: Path) -> None:
    words = f"""
        model={method} dataset=fico preset=quick tracking.enabled=false outputs_dir={tmp_path}
        exploration=none schedule.warm_up_epochs=8 fairness=demographic_parity schedule.time_steps=15
    """
    assert run(compose_config(*words.split())).last("dpu").mean() < 0.2


def test_places_are_those_of_the_world_and_a_small_group_is_told_of() -> None:
    words = "model=ensemble dataset=credit world=capacity world.capacity.share=0.25 fairness.window=50"
    training = training_of(*words.split(), "fairness=demographic_parity")
    assert isinstance(training.learner, FairThresholds)
    assert training.learner.share == 0.25
    notes = training.learner.notes(training.data)
    assert any("rests on about" in note and "fairness.window=50" in note for note in notes)


class Kinds(Learner):
    """Its log odds are those given of the kind of the person, the first feature."""

    two_groups = False

    def __init__(self, setting: Setting, log_odds: Tensor) -> None:
        super().__init__(ModelConfig(name="kinds"), setting)
        self.register_buffer("known", log_odds)

    def update(self, decided: Decided) -> None:
        """Learn nothing."""

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return self.log_odds(x, s, streams).sigmoid()

    def log_odds(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        assert not s.any(), "it gets 0 in place of s"
        return self.known[x[..., 0].long()]


@pytest.mark.parametrize("n_groups", [2, 4])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("slack", "share"), [(0.0, 1.0), (0.1, 0.3), (1.0, 1.0)])
@pytest.mark.parametrize("seed", range(3))
def test_no_decisions_without_s_that_keep_the_bound_earn_more(
    rule: FairnessRule,
    slack: float,
    share: float,
    n_groups: int,
    seed: int,
    two_features: MakeSetting,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """People of 12 kinds, of which p(ỹ = 1) and the shares of the groups are known."""
    draw = np.random.default_rng(seed)
    kind, of_kind = draw.integers(0, 12, 400), draw.dirichlet(np.ones(n_groups), 12)
    group = (draw.uniform(size=(400, 1)) > of_kind[kind].cumsum(1)).sum(1)
    kinds = np.eye(12)[kind]
    q = np.eye(n_groups)[group].T @ kinds / kinds.sum(0)
    p = (draw.beta(2.0, 2.0, 12) + 0.4 * (q[0] - 0.5)).clip(0.01, 0.99)
    setting = two_features([0])
    setting = replace(setting, schema=replace(setting.schema, n_groups=n_groups))
    config = FairnessConfig(rule=rule, slack=slack, blind=True, window=400)
    blind = BlindThresholds(config, Kinds(setting, torch.from_numpy(logit(p))), share)
    of_groups = torch.from_numpy(q[: n_groups - 1].T)
    monkeypatch.setattr(blind, "members", lambda x, **_: of_groups[x[..., 0].long()])
    x = torch.from_numpy(np.stack([kind, kind], -1)).float()[None]
    s = torch.from_numpy(group if n_groups > 2 else 2.0 * group - 1.0)[None]
    nothing = torch.zeros(1, 400)
    blind.see(Decided(x, s, nothing, nothing > 0, nothing))
    blind.choose_from_seen()
    pi = blind.propensity(x, s, ANY)[0].double().numpy()
    rates, worth = rates_of((p if rule is RULES[1] else 0 * p + 1)[kind], group), p[kind] - setting.cost
    most = most_within(worth @ kinds, rates @ kinds, slack, (kinds.sum(0), 400 * share))
    assert most - 400 * TEMPERATURE <= pi @ worth <= most + 1e-4
    assert np.ptp(rates @ pi) <= slack + 1e-5
    assert pi.mean() <= share + 1e-6


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n_groups", [2, 3])
def test_rates_among_new_people_are_equal_by_features_that_tell_the_group_in_part(
    rule: FairnessRule, n_groups: int, two_features: MakeSetting
) -> None:
    """A group has the greater log odds the greater its number, and another mean of the second feature."""
    setting = two_features([0])
    setting = replace(setting, schema=replace(setting.schema, n_groups=n_groups))
    bound = FairnessConfig(rule=rule, slack=0.0, blind=True, window=4000)

    def crowd(n: int, start: int) -> tuple[Decided, Tensor]:
        draw = torch.Generator().manual_seed(start)
        group = torch.randint(n_groups, (1, n), generator=draw)
        x = torch.randn(1, n, 2, generator=draw) + 0.8 * group.unsqueeze(-1)
        s = group if n_groups > 2 else 2.0 * group - 1.0
        nothing = torch.zeros(1, n)
        return Decided(x, s.float(), nothing, nothing > 0, nothing), group[0]

    gaps = []
    new, group = crowd(20_000, 1)
    for learner in (Known(setting), BlindThresholds(bound, Known(setting))):
        if isinstance(learner, BlindThresholds):
            learner.see(crowd(4000, 0)[0])
            learner.choose_from_seen()
        pi = learner.propensity(new.x, new.s, ANY)[0].double().numpy()
        p = new.x[0, :, 0].double().sigmoid().numpy()
        accepted = pi if isinstance(learner, BlindThresholds) else p > 0.5
        gaps.append(np.ptp(rates_of(p if rule is RULES[1] else 0 * p + 1, group.numpy()) @ accepted))
    assert gaps[0] > 0.15
    assert gaps[1] < 0.04
