from dataclasses import replace

import torch

from tests.conftest import MakePeople
from tests.models.conftest import (
    built,
    someone,
)


def test_loss_is_the_cross_entropy_of_the_accepted_whatever_their_propensity(people: MakePeople) -> None:
    learner, decided = built("greedy", [0, 1], features="abcde"), someone(people(30), 1, [0, 1])
    p = learner.score(decided.x, decided.s, learner.streams).double()
    right = torch.where(decided.label > 0, p, 1 - p).log() * decided.accepted
    for propensity in (decided.propensity, decided.propensity / 9):
        loss = learner.loss(replace(decided, propensity=propensity)).double()
        torch.testing.assert_close(loss, -right.sum(1) / decided.accepted.sum(1), rtol=1e-4, atol=0)
