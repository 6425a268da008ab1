from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from fairall.data.people import Decided
from fairall.models.rivals.neural_ucb import NeuralUcb, NeuralUcbConfig
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, MakeSetting
from tests.models.conftest import BAD, MISJUDGED, first_decided, online_step, regional, warmed

SEEDS = [0, 1]


@pytest.fixture
def config(compose_config: ComposeConfig) -> NeuralUcbConfig:
    model = compose_config("model=neural_ucb").model
    return replace(model, clf_arch=[8], updates=20, batch_size=32, learning_rate=0.02)


def features(learner: NeuralUcb, decided: Decided) -> np.ndarray:
    """φ by numpy of a net with one hidden layer, shape (E, B, K)."""
    weight, bias = (one.detach().double().numpy() for one in learner.classifier.weights_and_biases()[:2])
    inputs = torch.cat([decided.x, decided.s.unsqueeze(-1)], dim=-1).double().numpy()
    return np.maximum(inputs @ weight + bias, 0.0)


def test_the_sum_and_the_bonus_are_those_of_numpy(config: NeuralUcbConfig, two_features: MakeSetting) -> None:
    learner = warmed(NeuralUcb(replace(config, alpha=2.0, ridge=0.3, discount=0.7), two_features(SEEDS)))
    first = features(learner, first_decided(SEEDS))
    gram = first.transpose(0, 2, 1) @ first
    np.testing.assert_allclose(learner.gram.numpy(), gram, rtol=1e-4, atol=1e-5)
    people, _ = regional(SeedStreams(SEEDS, "crowd"), 12)
    accepted = torch.arange(12).expand(2, -1) % 3 > 0
    accepted[1] = False
    decided = Decided.reveal(people, accepted.float(), accepted)
    learner.update(decided)
    new = features(learner, decided) * accepted.numpy()[..., None]
    gram[0] = 0.7 * gram[0] + new[0].T @ new[0]  # and replicate 1, which has accepted nobody, keeps its own
    np.testing.assert_allclose(learner.gram.numpy(), gram, rtol=1e-4, atol=1e-5)
    phi = features(learner, decided)
    inverse = np.linalg.inv(gram + 0.3 * np.eye(8))
    bonus = 2.0 * np.sqrt(np.einsum("ebk,ekl,ebl->eb", phi, inverse, phi))
    np.testing.assert_allclose(learner.bonus(people.x, people.s).numpy(), bonus, rtol=1e-3)
    logit = learner.classifier.logit(people.x, people.s).detach().numpy()
    policy = learner.propensity(people.x, people.s, learner.streams)
    cost = learner.setting.cost
    expected = logit + bonus >= np.log(cost / (1 - cost))
    explored = learner.explore(people.x, people.s, policy, torch.zeros_like(people.s))
    assert np.array_equal(explored.numpy(), expected.astype(np.float32))


def test_with_few_accepted_people_everyone_is_accepted(
    config: NeuralUcbConfig, two_features: MakeSetting
) -> None:
    learner = NeuralUcb(config, two_features(SEEDS, "cost.value=0.5"))
    few = first_decided(SEEDS)
    few.accepted[:, 1:] = False
    for epoch in range(2):
        learner.warm_up_epoch(few, epoch)
    people, region = regional(SeedStreams(SEEDS, "crowd"), 60)
    policy = torch.zeros_like(people.s)
    explored = learner.explore(people.x, people.s, policy, policy)
    assert explored[region > 0].min() == 1.0
    without = NeuralUcb(replace(config, alpha=0.0), learner.setting)
    without.load_training_state(learner.training_state())
    policy = without.propensity(people.x, people.s, without.streams)
    assert torch.equal(without.explore(people.x, people.s, policy, policy), policy)


def test_the_bonus_shrinks_where_people_are_accepted(
    config: NeuralUcbConfig, two_features: MakeSetting
) -> None:
    learner = warmed(NeuralUcb(replace(config, discount=1.0), two_features(SEEDS)))
    people, region = regional(SeedStreams(SEEDS, "crowd"), 200)
    before = learner.bonus(people.x, people.s)
    kept = region == MISJUDGED
    for _ in range(3):
        learner.observe(Decided.reveal(people, kept.float(), kept))
    after = learner.bonus(people.x, people.s)
    assert (after <= before + 1e-9).all()

    def share(of: Tensor) -> float:
        return (after[of].mean() / before[of].mean()).item()

    assert share(region == MISJUDGED) < 0.5
    assert share(region == BAD) > share(region == MISJUDGED)


@pytest.mark.whole
def test_false_rejections_vanish(config: NeuralUcbConfig, two_features: MakeSetting) -> None:
    seeds = [0, 1, 2, 3]
    wide = replace(config, clf_arch=[40], learning_rate=0.01)  # of 8 units, those of a region may all be dead
    learner = warmed(NeuralUcb(wide, two_features(seeds, "cost.value=0.5")))
    crowd, luck = SeedStreams(seeds, "crowd"), SeedStreams(seeds, "luck")
    rejected = []
    for _ in range(25):
        people, region = regional(crowd, 48)
        _, policy = online_step(learner, people, luck.uniform(48))
        rejected.append((policy[region == MISJUDGED] == 0).float().mean().item())
    assert rejected[0] > 0.5
    assert np.mean(rejected[-5:]) < 0.05
