from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import Tensor

from fairall.data.people import Decided, People
from fairall.models.objectives import masked_mean
from fairall.runtime.randomness import SeedStreams
from tests.conftest import MakePeople
from tests.models.conftest import built, decided_on


def dcem(seeds: list[int], features: str, **changes: Any) -> Any:
    usual = {"learning_rate": 0.01, "updates": 2, "rounds": 2}
    return built("dcem", seeds, features=features, **(usual | changes))


def sigmoid(logit: Tensor) -> np.ndarray:
    return logit.detach().double().sigmoid().numpy()


def test_both_steps_are_those_of_numpy(people: MakePeople) -> None:
    learner, batch = dcem([0, 1], "abcde", regularisation=0.7), decided_on(people(30), 2)
    given = batch.x, batch.s
    e = sigmoid(learner.selection.logit(*given))
    accepted, label = batch.accepted.numpy(), batch.label.numpy()
    expected = np.where(accepted, label, sigmoid(learner.classifier.logit(*given)))
    completed = learner.completed(batch)
    assert_allclose(completed.label, expected, rtol=1e-5)
    with torch.no_grad():  # an M-step moves p, not what was expected of it
        learner.classifier.last.bias.add_(0.7)
    p = sigmoid(learner.classifier.logit(*given))
    loss = -(expected * np.log(p) + (1 - expected) * np.log(1 - p))
    seen = -np.where(accepted & (label == 1), np.log(p * e), np.log(1 - p * e))
    exact = (loss + 0.7 * expected * seen).mean(-1)
    assert_allclose(learner.loss(completed).detach(), exact, rtol=1e-4)
    of_selection = -np.where(accepted, np.log(e), np.log(1 - e)).mean(-1)
    assert_allclose(learner.selection_loss(batch).detach(), of_selection, rtol=1e-4)
    assert not np.array_equal(e, sigmoid(learner.selection.logit(batch.x, -batch.s)))


@pytest.mark.parametrize("rho", [0.0, 1.0])
def test_em_ends_where_its_derivative_is_zero(rho: float) -> None:
    changes = {"clf_arch": [], "learning_rate": 0.05, "rounds": 60, "regularisation": rho}
    learner, q, e = dcem([0], "abc", **changes), np.array([0.2, 0.5, 0.8]), [0.9, 0.25, 0.5]
    # 400 people of each of three kinds; shares of seen labels, and of 1 among them, are exactly these.
    kind, place = torch.arange(3).repeat_interleave(400)[None], torch.arange(400).repeat(1, 3) / 400
    seen, worth = torch.tensor([e, q.tolist()])[:, kind]
    s = 1.0 - 2.0 * (torch.arange(1200)[None] % 2)
    data = Decided(torch.eye(3)[kind], s, seen, place < seen, (place < seen * worth).float())
    learner.memory.minibatches = lambda n, *_: [data] * n
    for _ in range(6):
        learner.train_classifier()
    kinds = torch.eye(3).unsqueeze(0), torch.ones(1, 3)
    found, p = (sigmoid(net.logit(*kinds))[0] for net in (learner.selection, learner.classifier))
    assert_allclose(found, e, atol=0.01)
    # The derivative that the docstring of `DCEM` has.
    slope = (p - q) - rho * q * (1 - p) + rho * (1 - found) * p**2 * (1 - p) / (1 - p * found)
    assert_allclose(slope, 0.0, atol=0.01)
    assert ((p > q + 0.01) == (rho > 0)).all()


def test_it_is_nearer_to_the_truth_than_labels_of_the_accepted_or_unseen_ones_taken_for_0() -> None:
    """Labels are seen where x is large and more often of one group, and depend on x alone."""
    seeds = [*range(24)]
    streams = SeedStreams(seeds, "world")
    x, (group, luck, decision) = streams.normal(500, 1), streams.uniform(3, 500).unbind(1)
    s, worth = torch.where(group < 0.5, 1.0, -1.0), torch.sigmoid(1.5 * x[..., 0] + 0.5)
    seen = torch.sigmoid(3.0 * x[..., 0] - 1.0 + s)
    decided, errors = Decided.reveal(People(x, s, (luck < worth).float()), seen, decision < seen), []
    everybody = replace(decided, accepted=s != 0)
    for model, updates, known in (("dcem", 2, decided), ("greedy", 8, decided), ("greedy", 8, everybody)):
        learner = built(model, seeds, features="x", updates=updates, batch_size=64)
        for epoch in range(50):
            learner.warm_up_epoch(known, epoch)
        errors.append(masked_mean((learner.score(x, s, streams) - worth).abs(), ~decided.accepted))
    for other in errors[1:]:
        gain = other - errors[0]
        assert gain.mean() > 3 * gain.std() / len(seeds) ** 0.5
