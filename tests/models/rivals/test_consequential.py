from typing import Any

import pytest
import torch
from torch import Tensor

from fairall.data.people import Decided
from fairall.models.learner import DecisionRule
from fairall.models.rivals.consequential import FAIRNESS, Consequential
from tests.models.conftest import built

COST = 0.4
# A population of six kinds: people of each, share with label 1, propensity of two policies of the past.
X = torch.tensor([-1.0, 0.0, 2.0]).repeat(2)
S = torch.tensor([-1.0, 1.0]).repeat_interleave(3)
NUMBER = torch.tensor([16, 8, 16, 8, 24, 8])
OTHERS = torch.tensor([16, 8, 16, 8, 8, 24])  # of as many people of each group, and of as many accepted
QUALIFIED = torch.tensor([0.25, 0.5, 0.75, 0.25, 0.5, 1.0])
PAST = torch.tensor([[0.5, 0.25, 1.0, 0.25, 0.5, 0.5], [0.25, 1.0, 0.5, 1.0, 0.25, 0.25]])
KINDS = X.view(1, 6, 1), S.view(1, 6)


def one_feature(**changes: Any) -> Any:
    """A learner with a linear net of one feature and s."""
    usual = {"clf_arch": [], "learning_rate": 0.05, "fairness": "none"}
    return built("consequential", [0], f"cost.value={COST}", features="a", **(usual | changes))


def as_expected(number: Tensor = NUMBER) -> Decided:
    """The population, decided by both policies, each of which accepts exactly the expected numbers."""
    n = 4 * number  # so that all numbers below are whole
    kind = torch.arange(6).repeat_interleave(n).repeat(2)
    place = torch.cat([(torch.arange(int(of)) + 0.5) / of for of in n]).repeat(2)  # in (0, 1), of the kind
    propensity, worth = PAST.repeat_interleave(n, dim=1).flatten(), QUALIFIED[kind]
    label = place < worth
    accepted = torch.where(label, place / worth, (place - worth) / (1 - worth)) < propensity
    columns = X[kind].unsqueeze(-1), S[kind], propensity, accepted, (accepted & label).float()
    return Decided(*(of.unsqueeze(0) for of in columns))


def objective(learner: Consequential, policy: str, fairness: str) -> Tensor:
    """E[π(ỹ − c)] of both populations − λ/2 times the product of their gaps, from their probabilities."""
    probability = torch.sigmoid(learner.classifier.logit(*KINDS))[0]
    pi = torch.where(probability < 0.5, probability, 1.0) if policy == "semi_logistic" else probability
    benefit = {"none": 0.0 * pi, "demographic_parity": pi, "equal_opportunity": pi * QUALIFIED}[fairness]
    side, shares = torch.stack([S < 0, S > 0]), torch.stack([NUMBER, OTHERS]) / NUMBER.sum()
    (gaps,) = ((shares * side[:, None] * benefit).sum(-1) / (shares * side[:, None]).sum(-1)).diff(dim=0)
    return (shares.mean(0) * pi * (QUALIFIED - COST)).sum() - 0.5 * learner.config.lambda_ * gaps.prod()


@pytest.mark.parametrize("fairness", FAIRNESS)
@pytest.mark.parametrize("policy", ["logistic", "semi_logistic"])
def test_loss_and_gradient_are_those_of_the_populations_whoever_decided(policy: str, fairness: str) -> None:
    learner = one_feature(policy=policy, fairness=fairness, lambda_=3.0)
    for number in (NUMBER, OTHERS):  # each half of the minibatch below is one of them
        learner.remember(as_expected(number))
    weights = learner.classifier.weights_and_biases()
    with torch.no_grad():  # some σ above ½, some below
        weights[0].copy_(torch.tensor([[[0.4], [-0.5]]]))
        weights[1].fill_(-0.3)
    losses = learner.loss(learner.memory.rows()).sum(), -objective(learner, policy, fairness)
    torch.testing.assert_close(*losses, rtol=1e-4, atol=1e-6)
    for estimated, exact in zip(*(torch.autograd.grad(loss, weights) for loss in losses), strict=True):
        assert exact.abs().max() > 1e-3
        torch.testing.assert_close(estimated, exact, rtol=1e-3, atol=1e-6)


def test_a_threshold_rule_is_the_most_likely_logistic_model_cut_at_the_cost() -> None:
    learner, data = one_feature(policy="threshold"), as_expected()
    learner.minibatches = lambda: [data] * 400
    learner.update(data)
    logit, accepted = learner.classifier.logit(data.x, data.s).detach(), data.accepted
    # The score equations of the unweighted likelihood hold, and not those of the weighted one.
    columns = torch.stack([data.x[..., 0], data.s, torch.ones_like(logit)])
    slope = columns * (data.label - torch.sigmoid(logit))
    assert (slope[:, accepted].mean(-1).abs() < 1e-4).all()
    assert (slope / data.propensity)[:, accepted].mean(-1).abs().max() > 0.01
    assert learner.rule == DecisionRule(COST, drawn=False)
