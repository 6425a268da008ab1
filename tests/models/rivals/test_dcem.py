from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from torch import Tensor

from fairall.data.people import Decided, People
from fairall.models.rivals.dcem import DCEM, DCEMConfig
from fairall.models.rivals.greedy import Greedy
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, MakePeople, MakeSetting
from tests.models.conftest import decided_on, someone, taught, with_features


@pytest.fixture
def config(compose_config: ComposeConfig) -> DCEMConfig:
    model: DCEMConfig = compose_config("model=dcem").model
    return replace(model, clf_arch=[8], updates=2, rounds=2, batch_size=32, learning_rate=0.01)


def sigmoid(logit: Tensor) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-logit.detach().double().numpy()))


@pytest.mark.parametrize("regularisation", [0.0, 0.5, 1.0])
def test_both_steps_are_those_of_numpy(
    regularisation: float, config: DCEMConfig, setting: MakeSetting, people: MakePeople
) -> None:
    learner = DCEM(replace(config, regularisation=regularisation), setting([0, 1]))
    batch = decided_on(people(30), 2)
    p = sigmoid(learner.classifier.logit(batch.x, batch.s))
    e = sigmoid(learner.selection.logit(batch.x, batch.s))
    accepted, label = batch.accepted.numpy(), batch.label.numpy()
    completed = learner.completed(batch)
    expected = np.where(accepted, label, p)
    assert_allclose(completed.expected, expected, rtol=1e-5)
    with torch.no_grad():  # an M-step moves p, not what was expected of it
        learner.classifier.weights_and_biases()[-1].add_(0.7)
    p = sigmoid(learner.classifier.logit(batch.x, batch.s))
    loss = -(expected * np.log(p) + (1 - expected) * np.log(1 - p))
    seen = -np.where(accepted & (label == 1), np.log(p * e), np.log(1 - p * e))
    assert_allclose(
        learner.loss(completed).detach(), (loss + regularisation * expected * seen).mean(-1), rtol=1e-4
    )
    of_selection = -np.where(accepted, np.log(e), np.log(1 - e)).mean(-1)
    assert_allclose(learner.selection_loss(batch).detach(), of_selection, rtol=1e-4)


Q, SEEN = (0.2, 0.5, 0.8), (0.9, 0.25, 0.5)


def three_kinds(n: int = 400) -> Decided:
    """n people of each of three kinds; shares of seen labels, and of 1 among them, exactly `SEEN` and `Q`."""
    kind = torch.arange(3).repeat_interleave(n)
    place = torch.arange(n).repeat(3) / n
    seen, q = torch.tensor(SEEN)[kind], torch.tensor(Q)[kind]
    x = torch.nn.functional.one_hot(kind, 3).float()
    s = torch.where(torch.arange(3 * n) % 2 == 0, 1.0, -1.0)
    accepted = place < seen
    label = (accepted & (place < seen * q)).float()
    return Decided(*(value.unsqueeze(0) for value in (x, s, seen, accepted, label)))


def fixed_point(q: float, e: float, rho: float) -> float:
    """The root of the derivative that the docstring of `DCEM` has."""

    def slope(p: float) -> float:
        return (p - q) - rho * q * (1 - p) + rho * (1 - e) * p * p * (1 - p) / (1 - p * e)

    return float(brentq(slope, 1e-6, 1 - 1e-6))


@pytest.mark.parametrize("regularisation", [0.0, 1.0])
def test_em_ends_where_its_derivative_is_zero(
    regularisation: float, config: DCEMConfig, setting: MakeSetting
) -> None:
    config = replace(config, clf_arch=[], regularisation=regularisation, learning_rate=0.05, rounds=60)
    learner, data = DCEM(config, with_features(setting([0]), *"abc")), three_kinds()
    learner.memory.add(data)
    learner.memory.minibatches = lambda n, *_: [data] * n  # type: ignore[method-assign]
    for _ in range(6):
        learner.train_classifier()
    kinds, s = torch.eye(3).unsqueeze(0), torch.ones(1, 3)
    e = sigmoid(learner.selection.logit(kinds, s))[0]
    assert_allclose(e, SEEN, atol=0.01)
    p = learner.score(kinds, s, SeedStreams([0], "p"))[0]
    expected = [fixed_point(q, one, regularisation) for q, one in zip(Q, SEEN, strict=True)]
    assert_allclose(p, expected, atol=0.01)
    if regularisation == 0:
        assert_allclose(expected, Q, atol=1e-6)
    else:
        assert (np.array(expected) > np.array(Q) + 0.01).all()


def by_treating_rejection_as_label_0(decided: Decided) -> Decided:
    return replace(decided, accepted=torch.ones_like(decided.accepted))


@pytest.mark.whole
def test_it_is_nearer_to_the_truth_than_labels_of_the_accepted_or_unseen_ones_taken_for_0(
    config: DCEMConfig, compose_config: ComposeConfig, setting: MakeSetting
) -> None:
    """Labels are seen where x is large and more often of one group, and depend on x alone."""
    seeds = [*range(8)]
    streams, given = SeedStreams(seeds, "world"), with_features(setting(seeds), "x")
    x, s = streams.normal(500, 1), 2.0 * (streams.uniform(500) < 0.5) - 1.0
    worth = torch.sigmoid(1.5 * x[..., 0] + 0.5)
    people = People(x, s, (streams.uniform(500) < worth).float())
    seen = torch.sigmoid(3.0 * x[..., 0] - 1.0 + s)
    decided = Decided.reveal(people, seen, streams.uniform(500) < seen)
    assert 0.2 < decided.accepted.float().mean() < 0.5
    greedy = replace(
        compose_config("model=greedy").model, clf_arch=[8], updates=4, batch_size=64, learning_rate=0.01
    )
    error = {}
    for name, learner, known in (
        ("dcem", DCEM(replace(config, batch_size=64), given), decided),
        ("accepted alone", Greedy(greedy, given), decided),
        ("unseen is 0", Greedy(greedy, given), by_treating_rejection_as_label_0(decided)),
    ):
        for epoch in range(200):
            learner.warm_up_epoch(known, epoch)
        p = learner.score(x, s, streams).detach()
        rejected = ~decided.accepted
        error[name] = torch.stack([(p[k] - worth[k]).abs()[rejected[k]].mean() for k in range(8)])
    assert (error["dcem"] < 0.7 * error["unseen is 0"]).all()
    assert error["dcem"].mean() < 0.8 * error["accepted alone"].mean()


@pytest.mark.parametrize("sees_s", [True, False])
def test_s_is_a_feature_of_selection_and_of_labels_if_asked_for(
    sees_s: bool, config: DCEMConfig, setting: MakeSetting, people: MakePeople
) -> None:
    crowd = people(60)
    learner = DCEM(replace(config, protected_as_feature=sees_s), setting([0, 1]))
    taught(learner, crowd, range(3))
    x, s = crowd.x.expand(2, -1, -1), crowd.s.expand(2, -1)
    streams = SeedStreams([0, 1], "p")
    assert torch.equal(learner.score(x, s, streams), learner.score(x, -s, streams)) != sees_s
    assert not torch.equal(learner.selection.logit(x, s), learner.selection.logit(x, -s))
    assert learner.memory.counts.tolist() == [3 * someone(crowd, 0, [0]).s.shape[1]] * 2, "everybody"
