from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from fairall.data.people import Decided, People
from fairall.models.logistic import mixture_odds
from fairall.runtime.randomness import SeedStreams
from tests.conftest import MakePeople
from tests.models.conftest import built, someone

SEEDS = [0, 1]


def imputing(*words: str, seeds: list[int] = SEEDS, features: str = "abcde", **changes: Any) -> Any:
    usual = {"members": 4, "learning_rate": 0.01}
    return built("multiple_imputation", seeds, *words, features=features, **(usual | changes))


def test_labels_are_observed_or_drawn_with_the_members_probability_and_all_are_learnt(
    people: MakePeople,
) -> None:
    learner = imputing()
    with torch.no_grad():  # members of different opinions
        learner.classifier.last.bias.copy_(torch.linspace(-2, 2, 8).view(8, 1, 1))
    learner.remember(someone(people(30), 1, SEEDS))
    given = learner.memory.minibatches(1, 12_000, learner.streams.copy())[0]
    batch = learner.imputed(given)
    mean = learner.member_logits(given.x, given.s).sigmoid().mean(-1).detach()
    torch.testing.assert_close(learner.score(given.x, given.s, learner.streams), mean)
    odds = learner.log_odds(given.x, given.s, learner.streams)
    torch.testing.assert_close(odds.sigmoid().float(), mean)
    rejected, observed = ~given.accepted, given.label.unsqueeze(-1).expand_as(batch.label)
    assert torch.equal(batch.label[given.accepted], observed[given.accepted])
    p = learner.member_logits(given.x, given.s).sigmoid().detach()
    loss = -given.weight * torch.where(batch.label > 0, p, 1 - p).log()
    torch.testing.assert_close(learner.loss(batch).detach(), loss.sum(-1).mean(-1))
    for drawn, expected, chosen in zip(batch.label, p, rejected, strict=True):
        drawn, expected = drawn[chosen], expected[chosen]
        assert_allclose(drawn.mean(0), expected.mean(0), atol=0.03)
        assert np.ptp(expected.mean(0)) > 0.2
        between = np.corrcoef((drawn - expected).numpy().T) - np.eye(4)
        assert np.abs(between).max() < 0.06, "members draw independently"


def test_people_whom_the_initial_policy_rejected_have_lower_odds(people: MakePeople) -> None:
    learner, crowd = imputing(odds_ratio=3.0), people(30)
    learner.warm_up_epoch(someone(crowd, 1, SEEDS, 0.25), 0)
    learner.update(someone(crowd, 1, SEEDS, 0.6))
    batch = learner.memory.rows()
    p = learner.member_logits(batch.x, batch.s).sigmoid().detach()
    rejected = learner.imputation_probability(batch).detach()
    assert torch.equal(rejected[:, 16:], p[:, 16:]), "whom a later policy has decided on"
    odds = (rejected / (1 - rejected))[:, :16]
    accepted = 3 * odds / (1 + 3 * odds)
    torch.testing.assert_close(0.25 * accepted + 0.75 * rejected[:, :16], p[:, :16])


@pytest.mark.parametrize("odds_ratio", [4.0, None])
def test_labels_that_are_not_missing_at_random_are_learnt_with_their_odds_ratio(
    odds_ratio: float | None,
) -> None:
    """Half are accepted; of equal x those with label 1 have four times the odds."""
    seeds = [*range(16)]
    learner = imputing(seeds=seeds, features="x", batch_size=256, odds_ratio=odds_ratio)
    streams = SeedStreams(seeds, "world")
    x, (luck, decision) = streams.normal(1000, 1), streams.uniform(2, 1000).unbind(1)
    truth, half = x[..., 0].sigmoid(), torch.full_like(luck, 0.5)
    label = (luck < truth).float()
    odds = mixture_odds(half.double(), truth.double(), 4.0) * 4.0**label
    decided = Decided.reveal(People(x, 2 * half, label), half, decision < odds / (1 + odds))
    for epoch in range(40):
        learner.warm_up_epoch(decided, epoch)
    off = (learner.score(x, 2 * half, streams) - truth).mean(-1)
    z = off.mean() / (off.std() / len(seeds) ** 0.5)
    assert abs(z) < 3 if odds_ratio else z > 10
