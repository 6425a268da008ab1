import numpy as np
import torch

from fairall.data.people import Decided, People
from fairall.models.rivals.neural_ucb import NeuralUcb
from tests.models.conftest import applicants_of, built, first_decided, warmed

SEEDS = [0, 1]


def features(learner: NeuralUcb, decided: Decided) -> np.ndarray:
    """φ of a net with one hidden layer, shape (E, B, K)."""
    weight, bias = learner.classifier.weights_and_biases()[:2]
    inputs = torch.cat([decided.x, decided.s.unsqueeze(-1)], dim=-1)
    return (inputs @ weight + bias).relu().detach().double().numpy()


def test_the_sum_and_the_bonus_are_those_of_numpy() -> None:
    learner = warmed(built("neural_ucb", SEEDS, alpha=2.0, ridge=0.3, discount=0.7))
    first = features(learner, first_decided(SEEDS))
    gram = first.transpose(0, 2, 1) @ first
    np.testing.assert_allclose(learner.gram, gram, rtol=1e-4, atol=1e-5)
    x, s, _, _ = applicants_of(learner, 12)
    accepted = torch.arange(12).expand(2, -1) % 3 > 0
    accepted[1] = False
    decided = Decided.reveal(People(x, s, torch.ones_like(s)), accepted.float(), accepted)
    learner.update(decided)
    phi = features(learner, decided)
    new = phi[0, accepted[0]]
    gram[0] = 0.7 * gram[0] + new.T @ new  # and replicate 1, which has accepted nobody, keeps its own
    np.testing.assert_allclose(learner.gram, gram, rtol=1e-4, atol=1e-5)
    inverse = np.linalg.inv(gram + 0.3 * np.eye(8))
    bonus = 2.0 * np.sqrt(np.einsum("ebk,ekl,ebl->eb", phi, inverse, phi))
    np.testing.assert_allclose(learner.bonus(x, s), bonus, rtol=1e-3)
    cost, f = learner.setting.cost, learner.classifier.logit(x, s).detach().numpy()
    explored = learner.explore(x, s, torch.zeros_like(s), s).numpy()
    assert np.array_equal(explored, f + bonus >= np.log(cost / (1 - cost)))
