from typing import Any

import pytest
import torch
from torch import Tensor

from fairall.data.people import Decided, People
from fairall.models.rivals.consequential import FAIRNESS, Consequential
from fairall.runtime.randomness import SeedStreams
from tests.conftest import warm_up
from tests.models.conftest import online_step
from tests.models.rivals.test_rivals import built

COST = 0.4
# A population of six kinds: people of each, share with label 1, propensity of two policies of the past.
X = torch.tensor([-1.0, 0.0, 2.0]).repeat(2)
S = torch.tensor([-1.0, 1.0]).repeat_interleave(3)
NUMBER = torch.tensor([16, 8, 16, 8, 24, 8])
QUALIFIED = torch.tensor([0.25, 0.5, 0.75, 0.25, 0.5, 1.0])
PAST = torch.tensor([[0.5, 0.25, 1.0, 0.25, 0.5, 0.5], [0.25, 1.0, 0.5, 1.0, 0.25, 0.25]])
KINDS = X.view(1, 6, 1), S.view(1, 6)


def one_feature(seeds: list[int], *words: str, **changes: Any) -> Any:
    """A learner with a linear net of one feature and s."""
    usual = {"clf_arch": [], "batch_size": 64, "learning_rate": 0.01, "updates": 25}
    return built("consequential", seeds, f"cost.value={COST}", *words, features="a", **(usual | changes))


def as_expected() -> Decided:
    """The population, decided by both policies, each of which accepts exactly the expected numbers."""
    rows = []
    for past in PAST:
        for kind in range(6):
            n = 4 * int(NUMBER[kind])  # so that all numbers below are whole
            for outcome, share in ((1.0, QUALIFIED[kind]), (0.0, 1.0 - QUALIFIED[kind])):
                accepted = (torch.arange(int(share * n)) < past[kind] * int(share * n)).float()
                columns = [value.expand_as(accepted) for value in (X[kind], S[kind], past[kind])]
                rows.append(torch.stack([*columns, accepted, outcome * accepted], dim=-1))
    x, s, propensity, accepted, label = torch.cat(rows).unsqueeze(0).unbind(-1)
    return Decided(x.unsqueeze(-1), s, propensity, accepted > 0, label)


def objective(learner: Consequential, policy: str, fairness: str) -> Tensor:
    """E[π(ỹ − c)] − λ/2·Δb² of the population, computed from its probabilities."""
    probability = torch.sigmoid(learner.classifier.logit(*KINDS))[0]
    pi = torch.where(probability < 0.5, probability, 1.0) if policy == "semi_logistic" else probability
    share = NUMBER / NUMBER.sum()
    benefit = {"none": 0.0 * pi, "demographic_parity": pi, "equal_opportunity": pi * QUALIFIED}[fairness]
    of_s = [(share * benefit)[own].sum() / share[own].sum() for own in (S < 0, S > 0)]
    gap = of_s[1] - of_s[0]
    return (share * pi * (QUALIFIED - COST)).sum() - 0.5 * learner.config.lambda_ * gap**2


@pytest.mark.parametrize("fairness", FAIRNESS)
@pytest.mark.parametrize("policy", ["logistic", "semi_logistic"])
def test_loss_and_gradient_are_those_of_the_population_whoever_decided(policy: str, fairness: str) -> None:
    learner, data = one_feature([0], policy=policy, fairness=fairness, lambda_=3.0), as_expected()
    for _ in range(2):
        learner.memory.add(data)  # both halves of the minibatch below are the population
    learner.train_classifier()  # counts weights
    weights = learner.classifier.weights_and_biases()
    with torch.no_grad():  # some σ above ½, some below
        weights[0].copy_(torch.tensor([[[0.4], [-0.5]]]))
        weights[1].fill_(-0.3)
    losses = learner.loss(learner.memory.rows()).sum(), -objective(learner, policy, fairness)
    torch.testing.assert_close(*losses, rtol=1e-4, atol=1e-6)
    for estimated, exact in zip(*(torch.autograd.grad(loss, weights) for loss in losses), strict=True):
        assert exact.abs().max() > 1e-3
        torch.testing.assert_close(estimated, exact, rtol=1e-3, atol=1e-6)


@pytest.mark.whole
def test_the_penalty_of_minibatches_has_the_square_of_the_gap_as_its_mean() -> None:
    fairness = "demographic_parity"
    learner = one_feature([0], fairness=fairness, lambda_=2.0, batch_size=32)
    learner.memory.add(as_expected())
    learner.train_classifier()
    penalties = []
    with torch.no_grad():
        for _ in range(4000):
            batch = learner.memory.sample(32, learner.streams)
            pi = torch.sigmoid(learner.classifier.logit(batch.x, batch.s))
            penalties.append(learner.penalty(pi, batch))
        exact = objective(learner, "logistic", "none") - objective(learner, "logistic", fairness)
    measured = torch.cat(penalties)
    error = measured.std() / 4000**0.5
    assert (measured.mean() - exact).abs() < 4 * error
    # The mean square of one Δb would be greater by its variance, many times this error.
    assert error < 0.005


def late_profit(policy: str) -> tuple[Tensor, Tensor]:
    """Utility per applicant (E,) and final π of both kinds of people (E, 2), after a start of bad luck.

    Of x = −1 70 % have label 1, of x = +1 80 %, so that accepting everybody is best; but the four people with
    x = −1 whom the initial policy happens to accept have label 0.
    """
    seeds, epochs = [0, 1, 2], "schedule.warm_up_epochs=8"
    learner = one_feature(seeds, epochs, policy=policy, fairness="none", learning_rate=0.03, updates=10)
    x, label = torch.full((2, 3, 24), 1.0)
    x[:, :4] = -1.0
    label[:, :4] = label[:, 20:] = 0.0
    s, half = torch.tensor([-1.0, 1.0] * 12).expand(3, -1), torch.full_like(x, 0.5)
    warm_up(learner, Decided(x.unsqueeze(-1), s, half, half > 0, label))
    world, earned = SeedStreams(seeds, "toy"), torch.zeros(3)
    for _ in range(30):
        kind, group, luck, decision = world.uniform(4, 64).unbind(1)
        x, s = torch.where(kind < 0.5, -1.0, 1.0), torch.where(group < 0.5, -1.0, 1.0)
        people = People(x.unsqueeze(-1), s, (luck < torch.where(x < 0, 0.7, 0.8)).float())
        decided, _ = online_step(learner, people, decision)
        earned += (decided.accepted * (people.label - COST)).mean(-1) / 30
    kinds = torch.tensor([-1.0, 1.0]).expand(3, -1)
    return earned, learner.propensity(kinds.unsqueeze(-1), kinds, world)


@pytest.mark.whole
def test_a_threshold_rule_stays_in_the_error_that_semi_logistic_policies_leave() -> None:
    (stuck, stuck_at), (earned, ends_at) = map(late_profit, ("threshold", "semi_logistic"))
    assert torch.equal(stuck_at, torch.tensor([0.0, 1.0]).expand(3, 2))
    assert (ends_at > 0.9).all()
    assert (earned > stuck + 0.05).all()


def test_a_threshold_rule_is_the_most_likely_logistic_model_cut_at_the_cost() -> None:
    learner = one_feature([0], policy="threshold", fairness="none", learning_rate=0.05)
    data = as_expected()
    learner.memory.add(data)
    learner.minibatches = lambda: [learner.memory.rows()] * 400
    learner.train_classifier()
    logit, accepted = learner.classifier.logit(data.x, data.s).detach(), data.accepted
    # The score equations of the unweighted likelihood hold, and not those of the weighted one.
    columns = torch.stack([data.x[..., 0], data.s, torch.ones_like(logit)])
    slope = columns * (data.label - torch.sigmoid(logit))
    assert (slope[:, accepted].mean(-1).abs() < 1e-4).all()
    assert (slope / data.propensity)[:, accepted].mean(-1).abs().max() > 0.01
    p = torch.sigmoid(learner.classifier.logit(*KINDS))
    assert torch.equal(learner.propensity(*KINDS, learner.streams), (p >= COST).float())
    assert ((p > COST) != (p > 0.5)).any(), "c and ½ decide otherwise"
    torch.testing.assert_close(learner.log_odds(*KINDS, learner.streams), p.logit().double())
