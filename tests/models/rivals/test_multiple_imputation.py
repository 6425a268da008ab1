from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from fairall.data.people import Decided, People
from fairall.models.logistic import mixture_odds
from fairall.models.rivals.multiple_imputation import (
    Imputed,
    MultipleImputation,
    MultipleImputationConfig,
    Recorded,
)
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, MakePeople, MakeSetting
from tests.models.conftest import propensities, someone, taught, with_features


@pytest.fixture
def config(compose_config: ComposeConfig) -> MultipleImputationConfig:
    model: MultipleImputationConfig = compose_config("model=multiple_imputation").model
    return replace(model, clf_arch=[8], updates=4, batch_size=32, members=4, learning_rate=0.01)


def batches(learner: MultipleImputation, people: People, rate: float = 0.5) -> list[Imputed]:
    """Minibatches of one time step of people."""
    learner.remember(someone(people, 1, list(learner.setting.seeds), rate))
    found = learner.minibatches()
    assert all(isinstance(batch, Imputed) for batch in found)
    return [batch for batch in found if isinstance(batch, Imputed)]


def test_labels_are_observed_or_drawn_with_the_members_probability(
    config: MultipleImputationConfig, setting: MakeSetting, people: MakePeople
) -> None:
    learner = MultipleImputation(replace(config, updates=400), setting([0, 1]))
    with torch.no_grad():  # members of different opinions
        learner.classifier.weights_and_biases()[-1].copy_(torch.linspace(-2, 2, 8).view(8, 1, 1))
    for one in (found := batches(learner, people(30))):
        known = one.accepted.unsqueeze(-1)
        observed = one.label.unsqueeze(-1).expand_as(one.labels)
        assert torch.equal(torch.where(known, one.labels, 0.0), observed * known)
    drawn = torch.cat([one.labels for one in found], dim=1)
    p = torch.cat([learner.member_logits(one.x, one.s).sigmoid().mT for one in found], dim=1)
    rejected = ~torch.cat([one.accepted for one in found], dim=1)
    for e in range(2):
        share, expected = drawn[e][rejected[e]].mean(0), p[e][rejected[e]].mean(0)
        assert_allclose(share, expected.detach(), atol=0.03)
        assert expected.max() - expected.min() > 0.2
        between = np.corrcoef((drawn[e] - p[e])[rejected[e]].detach().numpy().T) - np.eye(4)
        assert np.abs(between).max() < 0.06, "members draw independently"


def test_loss_is_that_of_each_members_completed_sample(
    config: MultipleImputationConfig, setting: MakeSetting, people: MakePeople
) -> None:
    learner = MultipleImputation(config, setting([0, 1]))
    batch = batches(learner, people(30))[0]
    p = learner.member_logits(batch.x, batch.s).detach().sigmoid().mT.double().numpy()
    labels, copies = batch.labels.numpy(), batch.copies.numpy()
    expected = -(copies * (labels * np.log(p) + (1 - labels) * np.log(1 - p))).sum(-1).mean(-1)
    assert_allclose(learner.loss(batch).detach(), expected, rtol=1e-4)


@pytest.mark.parametrize("cost", [0.35, 0.5])
def test_it_decides_by_the_mean_over_members(
    cost: float, config: MultipleImputationConfig, setting: MakeSetting, people: MakePeople
) -> None:
    crowd, learner = people(60), MultipleImputation(config, setting([0, 1], f"cost.value={cost}"))
    taught(learner, crowd, range(4))
    x, s, streams = crowd.x.expand(2, -1, -1), crowd.s.expand(2, -1), SeedStreams([0, 1], "p")
    mean = learner.member_logits(x, s).sigmoid().mean(1)
    torch.testing.assert_close(learner.score(x, s, streams), mean.detach())
    torch.testing.assert_close(learner.log_odds(x, s, streams).sigmoid().float(), mean.detach())
    assert torch.equal(propensities(learner, crowd), (learner.score(x, s, streams) >= cost).float())
    assert learner.memory.counts.tolist() == [64, 64]


def test_rejected_people_of_the_initial_policy_have_lower_odds(
    config: MultipleImputationConfig, setting: MakeSetting, people: MakePeople
) -> None:
    learner, crowd = MultipleImputation(replace(config, odds_ratio=3.0), setting([0, 1])), people(30)
    learner.warm_up_epoch(someone(crowd, 1, [0, 1], 0.25), 0)
    learner.update(someone(crowd, 1, [0, 1], 0.6))
    batch = learner.memory.rows()
    assert isinstance(batch, Recorded)
    first = batch.initially
    p = learner.member_logits(batch.x, batch.s).sigmoid().mT.detach()
    rejected = learner.imputation_probability(batch).detach()
    assert torch.equal(rejected[~first], p[~first])
    share, odds = batch.propensity[first].unsqueeze(-1), rejected[first] / (1 - rejected[first])
    accepted = 3 * odds / (1 + 3 * odds)
    torch.testing.assert_close(share * accepted + (1 - share) * rejected[first], p[first])
    assert (batch.propensity[first] == 0.25).all()
    assert first.sum(1).tolist() == [16, 16]


def test_without_a_warm_up_nobody_was_decided_on_by_the_initial_policy(
    config: MultipleImputationConfig, setting: MakeSetting, people: MakePeople
) -> None:
    learner = MultipleImputation(replace(config, odds_ratio=3.0), setting([0]))
    learner.update(someone(people(30), 1, [0]))
    batch = learner.memory.rows()
    assert isinstance(batch, Recorded)
    assert not batch.initially.any()


@pytest.mark.whole
@pytest.mark.parametrize(("odds_ratio", "bias"), [(4.0, 0.0), (None, 0.13)])
def test_labels_that_are_not_missing_at_random_are_learnt_with_their_odds_ratio(
    odds_ratio: float | None, bias: float, config: MultipleImputationConfig, setting: MakeSetting
) -> None:
    seeds = [0, 1, 2, 3]
    streams, given = SeedStreams(seeds, "world"), with_features(setting(seeds), "x")
    learner = MultipleImputation(replace(config, odds_ratio=odds_ratio, updates=20, batch_size=256), given)
    x, s = streams.normal(4000, 1), 2.0 * (streams.uniform(4000) < 0.5) - 1.0
    truth = torch.sigmoid(x[..., 0])
    label = (streams.uniform(4000) < truth).float()
    propensity = torch.full_like(truth, 0.5)
    odds = mixture_odds(propensity.double(), truth.double(), 4.0) * 4.0**label
    decided = Decided.reveal(People(x, s, label), propensity, streams.uniform(4000) < odds / (1 + odds))
    for epoch in range(40):
        learner.warm_up_epoch(decided, epoch)
    off = learner.score(x, s, streams) - truth
    assert off.mean() == pytest.approx(bias, abs=0.02)


@pytest.mark.whole
def test_members_vary_more_where_labels_are_absent(
    config: MultipleImputationConfig, setting: MakeSetting
) -> None:
    seeds = [0, 1, 2]
    streams, given = SeedStreams(seeds, "world"), with_features(setting(seeds), "x")
    learner = MultipleImputation(replace(config, members=10, updates=20, batch_size=64), given)
    x, s = streams.normal(400, 1), 2.0 * (streams.uniform(400) < 0.5) - 1.0
    people = People(x, s, (streams.uniform(400) < torch.sigmoid(2.0 * x[..., 0])).float())
    seen = (x[..., 0] > 0).float()
    for epoch in range(30):
        learner.warm_up_epoch(Decided.reveal(people, seen, seen > 0), epoch)
    p = learner.member_logits(x, s).sigmoid().std(1)
    for k in range(3):
        assert p[k][seen[k] == 0].mean() > 1.5 * p[k][seen[k] > 0].mean()
