from typing import Any

import numpy as np
import torch
from numpy.testing import assert_allclose

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
