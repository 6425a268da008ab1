from typing import Any

import pytest
import torch
from scipy.stats import poisson

from tests.conftest import MakePeople
from tests.models.conftest import built, someone, stacked


def small(people: MakePeople, steps: int, rate: float, **changes: Any) -> Any:
    """A small ensemble of two seeds after updates."""
    learner = built("ensemble", [0, 1], features="abcde", **{"members": 4, "updates": 1, **changes})
    for step in range(steps):
        learner.update(someone(people(60), step, [0, 1], rate))
    return learner


def test_members_see_samples_of_their_own_with_poisson_copies(people: MakePeople) -> None:
    copies = small(people, 40, 1.0, members=10).memory.rows().weight
    assert copies.shape == (2, 640, 10)
    share = torch.stack([(copies == n).float().mean() for n in range(6)])
    torch.testing.assert_close(share, torch.tensor(poisson.pmf(range(6), 1)).float(), atol=0.02, rtol=0)
    correlation = torch.corrcoef(copies.mT.flatten(0, 1)) - torch.eye(20)
    assert correlation.abs().max() < 0.2


def test_loss_is_that_of_each_members_sample_and_teaches_it_alone(people: MakePeople) -> None:
    learner = small(people, 1, 0.5)
    batch = learner.memory.rows()
    batch.weight[0, :, 2] = 0  # of member 2 of the first seed
    loss = learner.loss(batch)
    p = learner.member_logits(batch.x, batch.s).sigmoid().double()
    right = torch.where(batch.label.unsqueeze(-1) > 0, p, 1 - p).log()
    total = -(batch.weight * right * batch.accepted.unsqueeze(-1)).sum((1, 2))
    torch.testing.assert_close(loss.double(), total / batch.accepted.sum(-1), rtol=1e-4, atol=0)
    for gradient in torch.autograd.grad(loss.sum(), list(learner.classifier.parameters())):
        moved = gradient.flatten(1).abs().sum(-1) > 0
        assert moved.tolist() == [True, True, False, True, True, True, True, True]


@pytest.mark.parametrize(("quantile", "logit"), [(0.75, 1.0), (0.5, -3.0)])
def test_the_score_is_a_quantile_of_what_members_say(
    quantile: float, logit: float, people: MakePeople
) -> None:
    learner, given = small(people, 0, 0.0, members=5, quantile=quantile), stacked(people(20))
    assert (learner.member_logits(*given).std(-1) > 0).all(), "weights of their own"
    *_, weight, bias = (parameter.data for parameter in learner.classifier.parameters())
    weight.zero_()
    bias.copy_(torch.tensor([-3.0, -3, -3, 1, 1] * 2).view(-1, 1, 1))
    found = (
        learner.score(*given, learner.streams),
        learner.log_odds(*given, learner.streams).sigmoid().float(),
    )
    torch.testing.assert_close(found, (torch.full((2, 20), logit).sigmoid(),) * 2)
