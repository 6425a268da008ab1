import math
from dataclasses import replace

import pytest
import torch

from fairall.models.members import Resampled
from fairall.models.rivals.ensemble import Ensemble, EnsembleConfig
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, MakePeople, MakeSetting
from tests.models.conftest import propensities, someone, taught


@pytest.fixture
def config(compose_config: ComposeConfig) -> EnsembleConfig:
    model = compose_config("model=ensemble").model
    return replace(model, clf_arch=[8], updates=4, batch_size=32, members=4, quantile=0.8)


def test_members_see_samples_of_their_own_with_poisson_copies(
    config: EnsembleConfig, setting: MakeSetting, people: MakePeople
) -> None:
    crowd, learner = people(60), Ensemble(replace(config, members=10, updates=1), setting([0, 1]))
    for step in range(40):
        learner.update(someone(crowd, step, [0, 1], rate=1.0))
    rows = learner.memory.rows()
    assert isinstance(rows, Resampled)
    assert rows.copies.shape == (2, 640, 10)
    share = torch.stack([(rows.copies == n).float().mean() for n in range(4)])
    expected = torch.tensor([math.exp(-1) / math.factorial(n) for n in range(4)])
    torch.testing.assert_close(share, expected, atol=0.02, rtol=0)
    assert rows.copies.mean().item() == pytest.approx(1.0, abs=0.03)
    assert rows.copies.var().item() == pytest.approx(1.0, abs=0.06)
    members = rows.copies.permute(0, 2, 1).flatten(0, 1)
    correlation = torch.corrcoef(members) - torch.eye(20)
    assert correlation.abs().max() < 0.2


@pytest.fixture
def learner(config: EnsembleConfig, setting: MakeSetting, people: MakePeople) -> Ensemble:
    """Of two seeds, after one update."""
    learner = Ensemble(config, setting([0, 1]))
    learner.update(someone(people(30), 1, [0, 1]))
    return learner


def test_loss_is_that_of_each_members_sample(learner: Ensemble) -> None:
    batch = learner.memory.rows()
    assert isinstance(batch, Resampled)
    with torch.no_grad():
        loss = learner.loss(batch)
        p = torch.sigmoid(learner.member_logits(batch.x, batch.s)).double()
    right = torch.where(batch.label.unsqueeze(1) > 0, p, 1 - p).log()
    total = -(batch.copies.mT * right * batch.accepted.unsqueeze(1)).sum((1, 2))
    torch.testing.assert_close(loss.double(), total / batch.accepted.sum(-1), rtol=1e-4, atol=0)


def test_a_member_learns_from_its_own_sample_only(learner: Ensemble) -> None:
    batch = learner.memory.rows()
    assert isinstance(batch, Resampled)
    learner.optimiser.zero_grad()
    batch.copies[0, :, 2] = 0  # of member 2 of the first seed
    learner.loss(batch).sum().backward()
    for parameter in learner.classifier.parameters():
        assert parameter.grad is not None
        moved = parameter.grad.flatten(1).abs().sum(-1) > 0
        assert moved.tolist() == [True, True, False, True, True, True, True, True]


def test_it_accepts_where_members_disagree(
    config: EnsembleConfig, setting: MakeSetting, people: MakePeople
) -> None:
    crowd = people(20)
    agreed, disagreed = [-1.0] * 5, [-3.0, -3.0, -3.0, 1.0, 1.0]
    for quantile, logits, accepts in ((0.8, agreed, False), (0.8, disagreed, True), (0.5, disagreed, False)):
        learner = Ensemble(replace(config, members=5, quantile=quantile), setting([0, 1]))
        *_, weight, bias = (parameter.data for parameter in learner.classifier.parameters())
        weight.zero_()
        bias.copy_(torch.tensor(logits).repeat(2).view(-1, 1, 1))
        assert (propensities(learner, crowd) == float(accepts)).all()
    score = learner.score(crowd.x.expand(2, -1, -1), crowd.s.expand(2, -1), SeedStreams([0, 1], "p"))
    torch.testing.assert_close(score, torch.sigmoid(torch.tensor(-3.0)).expand(2, 20))


def test_members_disagree_less_where_they_know_more(
    config: EnsembleConfig, setting: MakeSetting, people: MakePeople
) -> None:
    given, crowd = setting([0, 1]), people(60)
    learner = Ensemble(replace(config, members=10, updates=20), given)
    known = replace(crowd, label=(crowd.s > 0).float())
    few = replace(known, x=known.x.clone())
    few.x[:, 0] = few.x[:, 0].abs()  # nobody of negative height
    taught(learner, few, range(25))

    def spread(height: float) -> torch.Tensor:
        x = crowd.x.clone()
        x[:, 0] = height
        p = learner.member_logits(x.expand(2, -1, -1), crowd.s.expand(2, -1)).sigmoid()
        return p.std(1).mean(-1)

    assert (spread(-4.0) > 1.5 * spread(1.0)).all()
