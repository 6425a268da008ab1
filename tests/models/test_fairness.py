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
from fairall.models.rivals.greedy import Greedy
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
    torch.testing.assert_close(seen.log_odds, log_odds(seen.x, seen.s, ANY))


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


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("slack", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_no_decisions_without_s_that_keep_the_bound_earn_more(
    rule: FairnessRule, slack: float, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People of 12 kinds, of whom the learner and its net of groups know p(ỹ = 1 | x) and p(S = +1 | x)."""
    learner = training_of("model=greedy", "dataset=credit", "seeds=1").learner
    assert isinstance(learner, Greedy)
    blind = BlindThresholds(FairnessConfig(rule=rule, slack=slack, blind=True, window=100), learner)
    monkeypatch.setattr(learner, "log_odds", lambda x, *_: x[..., 0])
    monkeypatch.setattr(blind.group_net, "logit", lambda x, _: x[..., 1])
    draw = np.random.default_rng(seed)
    kind = draw.integers(0, 12, 200)
    group, of_kind = (draw.uniform(size=200) < draw.uniform(size=12)[kind]).astype(float), np.eye(12)[kind]
    q = group @ of_kind / of_kind.sum(0)
    p = (draw.beta(2.0, 2.0, 12) + 0.4 * (q - 0.5)).clip(0.01, 0.99)
    with np.errstate(divide="ignore"):
        x = torch.from_numpy(logit(np.stack([p, q], -1)))[kind][None]
    s = torch.from_numpy(2.0 * group - 1.0)[None]
    blind.choose(x[..., 0], x, s)
    pi = blind.propensity(x, s, ANY)[0].numpy()
    rates, worth = rates_of((p if rule is RULES[1] else 0 * p + 1)[kind], group), p[kind] - blind.setting.cost
    most = most_within(worth @ of_kind, rates @ of_kind, slack)
    assert pi @ worth == pytest.approx(most, abs=1e-6)
    assert np.ptp(rates @ pi) <= slack + 1e-9
