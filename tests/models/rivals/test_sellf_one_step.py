import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy

from fairall.data.people import Decided
from fairall.models.classifier import ClassifierNet
from fairall.models.rivals.sellf_one_step import PastPolicies, SellfOneStep
from fairall.runtime.randomness import SeedStreams
from tests.models.conftest import built, online_step, regional, warmed


def mean(weight: Tensor, values: Tensor) -> Tensor:
    """A weighted mean over people, the last axis."""
    return (weight * values).sum(-1) / weight.sum(-1)


@pytest.mark.parametrize("omega", [0.02, 2.0])
@pytest.mark.parametrize("fairness", ["tpr", "accuracy"])
def test_losses_are_those_of_the_page_and_each_net_learns_by_its_own(fairness: str, omega: float) -> None:
    seeds, chosen = [0, 1], ("cost.value=0.3", f"model.omega={omega}", "model.beta_1=3", "model.beta_2=0.2")
    learner: SellfOneStep = built("sellf_one_step", seeds, *chosen, fairness=fairness)
    people, _ = regional(SeedStreams(seeds, "crowd"), 30)
    x, s, accepted = people.x, people.s, (torch.arange(30) % 3 > 0).expand(2, -1)
    batch = Decided.reveal(people, torch.full_like(s, 0.6), accepted)
    past = [ClassifierNet(learner.setting, [8], SeedStreams(seeds, name)) for name in ("first", "second")]
    for net in past:
        learner.past.add(net, learner.past_streams)
    none_accepts = torch.stack([1 - net.logit(x, s).sigmoid() for net in past]).prod(0)
    any_accepts = (1 - none_accepts).clamp(min=0.6).detach()
    pi, m = (net.logit(x, s).sigmoid() for net in (learner.policy, learner.classifier))
    group = torch.stack([s > 0, s < 0])

    weight = group * accepted * (1 - pi.detach()) / any_accepts
    of_predictor = mean(weight, binary_cross_entropy(m, batch.label, reduction="none")).sum(0)
    imputed = torch.where(accepted, batch.label, m.detach())
    right, counted = {
        "tpr": (pi, imputed),
        "accuracy": (pi * imputed + (1 - pi) * (1 - imputed), torch.ones_like(pi)),
    }[fairness]
    first, second = mean(group * counted, right)
    c = mean(group, any_accepts) / mean(group, 1 - pi.detach()) / mean(group, counted)
    moments = c / c.sum(0) * mean(group, (1 - pi).square() / any_accepts)
    utility = (accepted / 0.6 * (batch.label - 0.3) * pi).mean(-1)
    unfair = ((first - second).abs() - omega / 2).clamp(min=0)
    of_policy = -utility + 3.0 * unfair + 0.2 * moments.sum(0)

    weights = [*learner.policy.parameters(), *learner.classifier.parameters()]
    for loss, expected in ((learner.loss, of_predictor), (learner.policy_loss, of_policy)):
        torch.testing.assert_close(loss(batch), expected)
        gradients = (
            torch.autograd.grad(of.sum(), weights, allow_unused=True) for of in (loss(batch), expected)
        )
        torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("bound", [None, 100.0, 4.0])
def test_weights_are_bounded_and_not_below_what_is_known_of_a_person(bound: float | None) -> None:
    people, _ = regional(SeedStreams([0], "crowd"), 4)
    learner = built("sellf_one_step", [0], f"protocol.max_ips_weight={bound or 'null'}")
    torch.nn.init.zeros_(learner.policy.last.weight)
    torch.nn.init.constant_(learner.policy.last.bias, -16.0)
    for propensity, known in ((0.2, 5.0), (0.0, 8886111.0)):
        batch = Decided.reveal(people, torch.full_like(people.s, propensity), people.s != 0)
        expected = torch.full((1, 4), min(known, bound or known))
        torch.testing.assert_close(learner.inverse_any(batch), expected, rtol=1e-4, atol=0)
        learner.past.add(learner.policy, learner.past_streams)  # which accepts with probability σ(−16)


def test_past_policies_are_a_uniform_sample_of_all() -> None:
    learner: SellfOneStep = built("sellf_one_step", range(600))
    past, bias = PastPolicies(learner.policy, 4), learner.policy.last.bias
    for t in range(12):
        torch.nn.init.constant_(bias, t)  # by which the policy is known
        past.add(learner.policy, learner.past_streams)
    kept = torch.stack([list(net.parameters())[-1].detach().flatten() for net in past.nets])
    times = torch.stack([(kept == t).any(0) for t in range(12)]).float()
    assert (times.sum(0) == 4).all()
    torch.testing.assert_close(times.mean(1), torch.full((12,), 4 / 12), atol=0.07, rtol=0)


def test_the_policies_that_decided_are_remembered_and_those_of_the_warm_up_are_not() -> None:
    learner: SellfOneStep = warmed(built("sellf_one_step", [0]))
    assert learner.past.added == 0
    people, _ = regional(SeedStreams([0], "crowd"), 20)
    decided, chance = online_step(learner, people, torch.rand(1, 20))
    torch.testing.assert_close(1 / learner.inverse_any(decided), chance.clamp(min=0.01))
    assert not torch.allclose(learner.propensity(people.x, people.s, learner.streams), chance)
