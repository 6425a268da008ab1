from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy

from fairall.data.people import Decided
from fairall.models.classifier import accepted_cross_entropy
from fairall.models.rivals import sellf_one_step
from fairall.models.rivals.sellf_one_step import PastPolicies, SellfOneStep, confidence_weights, fairness_gap
from fairall.nn.stacked import StackedMLP
from fairall.runtime.randomness import SeedStreams
from tests.models.conftest import online_step, regional, warmed
from tests.models.rivals.test_rivals import built


def linear(net: StackedMLP, slope: float, intercept: float = 0.0) -> None:
    """Make a net without hidden layers the logit slope·x + intercept, whatever s."""
    torch.nn.init.zeros_(net.last.weight)[:, 0] = slope
    torch.nn.init.constant_(net.last.bias, intercept)


def with_linear_nets(
    seeds: list[int],
    *words: str,
    policy: Sequence[float] = (1.0, -0.5),
    predictor: Sequence[float] = (2.0, 0.1),
    past: Sequence[float] = (),
    **changes: Any,
) -> Any:
    """A learner with slopes and intercepts of logits; of past policies the slopes."""
    nets: dict[str, Any] = {"clf_arch": [], "policy_arch": [], "past_policies": 3}
    learner = built("sellf_one_step", seeds, *words, features="a", **(nets | changes))
    with torch.no_grad():
        for slope in past:
            linear(learner.policy, slope)
            learner.past.add(learner.policy)
        linear(learner.policy, *policy)
        linear(learner.classifier, *predictor)
    return learner


def batch_of(x: Tensor, propensity: float = 0.25) -> Decided:
    """People of one feature x (E, B), of both groups in turn, every third rejected."""
    n = torch.arange(x.shape[1])
    accepted, label = (n % 3 != 2).expand_as(x), (n % 5 < 2).to(x.dtype).expand_as(x)
    s = (1.0 - 2.0 * (n % 2)).expand_as(x)
    return Decided(x.unsqueeze(-1), s, torch.full_like(x, propensity), accepted, label * accepted)


def sides(s: Tensor) -> Tensor:
    """Who is of S = +1 and of S = −1, shape (2, E, B)."""
    return torch.stack([s == 1, s == -1])


def mean(weight: Tensor, values: Tensor) -> Tensor:
    """A weighted mean over people, the last axis."""
    return (weight * values).sum(-1) / weight.sum(-1)


def test_weights_of_two_past_policies() -> None:
    learner = with_linear_nets([0, 1], policy=(0.7, 0.2), predictor=(-1.0, 0.5), past=(2.0, -1.0))
    batch = batch_of(torch.linspace(-2, 2, 24).expand(2, -1), propensity=0.01)
    x = batch.x.squeeze(-1)
    any_accepts = 1 - torch.sigmoid(-2 * x) * torch.sigmoid(x)
    torch.testing.assert_close(learner.inverse_any(batch), 1 / any_accepts)
    loss = binary_cross_entropy(torch.sigmoid(0.5 - x), batch.label, reduction="none")
    weight = sides(batch.s) * batch.accepted * torch.sigmoid(-0.7 * x - 0.2) / any_accepts
    torch.testing.assert_close(learner.loss(batch), mean(weight, loss).sum(0))


@pytest.mark.parametrize("bound", [None, 100.0, 4.0])
def test_weights_are_bounded_and_not_below_what_is_known_of_a_person(bound: float | None) -> None:
    word = f"protocol.max_ips_weight={bound or 'null'}"
    for past, propensity, known in (((), 0.2, 0.2), ((1.0,), 0.0, torch.tensor(-8.0).sigmoid().item())):
        batch = batch_of(torch.full((1, 4), -8.0), propensity)
        found = with_linear_nets([0], word, past=past).inverse_any(batch)
        assert found.flatten().tolist() == pytest.approx([min(1 / known, bound or 1 / known)] * 4, rel=1e-4)


@pytest.mark.whole
def test_past_policies_are_a_uniform_sample_of_all() -> None:
    seeds, most, n = range(1500), 4, 12
    make = partial(StackedMLP, 2, [3], 1)
    past, policy = PastPolicies(make, seeds, most), make(SeedStreams(seeds, "policies"))
    for t in range(n):
        torch.nn.init.constant_(policy.last.bias, t)  # by which the policy is known
        past.add(policy)
    kept = past.net.last.bias.view(1500, most)
    times = torch.stack([(kept == t).any(1) for t in range(n)]).float()
    assert (times.sum(0) == most).all()
    torch.testing.assert_close(times.mean(1), torch.full((n,), most / n), atol=0.045, rtol=0)


def reliability(weighted: bool) -> Tensor:
    """Mean |m − p| over people whom the policy rejects, shape (E,), of a linear m trained on the accepted.

    P(ỹ = 1 | x) is a V in x. The past policy accepts at the right, and only at times at the left; the
    present one rejects the left.
    """
    nets = {"policy": (4.0,), "predictor": (0.0,), "past": (1.5,)}
    learner = with_linear_nets([*range(5)], **nets, learning_rate=0.05)
    position, group, luck, decision = SeedStreams(range(5), "toy").uniform(4, 6000).unbind(1)
    x, s = 4 * position - 2, torch.where(group < 0.5, 1.0, -1.0)
    p, propensity = 0.1 + 0.4 * x.abs(), torch.sigmoid(1.5 * x)
    accepted = decision < propensity
    everybody = Decided(x.unsqueeze(-1), s, propensity, accepted, (luck < p).float() * accepted)
    for _ in range(150):
        logit = learner.classifier.logit(everybody.x, s)
        loss = learner.loss(everybody) if weighted else accepted_cross_entropy(logit, everybody)
        learner.optimiser.minimise(loss)
    error = (torch.sigmoid(learner.classifier.logit(everybody.x, s)) - p).abs()
    return mean(1 - learner.accepts(everybody.x, s), error)


@pytest.mark.whole
def test_the_weights_make_a_misspecified_predictor_right_where_the_policy_rejects() -> None:
    assert (reliability(weighted=True) < 0.07).all()
    assert (reliability(weighted=False) > 0.2).all()


def test_gap_is_that_of_rates_by_hand_and_0_without_one_of_them() -> None:
    accepts, label, group = SeedStreams([0, 1, 2], "gap").uniform(3, 20).unbind(1)
    s = torch.where(group < 0.5, 1.0, -1.0)
    s[2] = 1.0
    label[1, s[1] < 0] = 0.0
    right = accepts * label + (1 - accepts) * (1 - label)
    for name, weight, values, known in (("tpr", label, accepts, 1), ("accuracy", 1.0, right, 2)):
        rates = mean(sides(s) * weight, values)
        expected = torch.where(torch.arange(3) < known, (rates[0] - rates[1]).abs(), 0.0)
        torch.testing.assert_close(fairness_gap(name, accepts, label, s), expected)


def test_confidence_weights_are_second_moments_times_the_share_of_rejected() -> None:
    accepts, label, any_accepts, group = SeedStreams([1], "weights").uniform(4, 400).unbind(1)
    s = torch.where(group < 0.3, 1.0, -1.0)
    given = accepts, label, 1 / any_accepts, s
    accuracy, tpr = (confidence_weights(name, *given)[:, 0] for name in ("accuracy", "tpr"))
    for weights in (accuracy, tpr):
        torch.testing.assert_close(weights.sum(), torch.tensor(1.0))
    own = sides(s)[:, 0].float()
    rejected, remembered = (own * of / (own * of).sum(-1, keepdim=True) for of in (1 - accepts, any_accepts))
    square = torch.where(own > 0, rejected.square() / remembered, 0.0).sum(-1)
    moments = square * mean(own, 1 - accepts)
    terms = mean(own, (1 - accepts).square() / any_accepts)
    torch.testing.assert_close(accuracy * terms / (accuracy * terms).sum(), moments / moments.sum())
    by_labels = accuracy / mean(own, label)
    torch.testing.assert_close(tpr, by_labels / by_labels.sum())


def test_loss_of_the_policy_is_its_closed_form() -> None:
    words = "cost.value=0.3", "protocol.max_ips_weight=5"
    learner = with_linear_nets([0], *words, past=(0.5,), beta_1=3.0, beta_2=0.2, omega=0.02)
    batch = batch_of(torch.linspace(-1, 2, 15).unsqueeze(0))
    x, s = batch.x.squeeze(-1), batch.s
    pi, m = torch.sigmoid(x - 0.5), torch.sigmoid(2 * x + 0.1)
    imputed = torch.where(batch.accepted, batch.label, m)
    inverse = 1 / torch.sigmoid(0.5 * x).clamp(min=0.25)
    utility = (batch.accepted * 4.0 * (batch.label - 0.3) * pi).mean(-1)
    gap = fairness_gap("tpr", pi, imputed, s)
    c = confidence_weights("tpr", pi, imputed, inverse, s)
    term = 0.2 * (c * mean(sides(s), (1 - pi).square() * inverse)).sum(0)
    assert gap > 0.01
    torch.testing.assert_close(learner.policy_loss(batch).detach(), 3.0 * (gap - 0.01) + term - utility)
    learner.config.omega = 2.0
    torch.testing.assert_close(learner.policy_loss(batch).detach(), term - utility)


@pytest.mark.parametrize("fairness", ["tpr", "accuracy"])
def test_gradients_are_those_of_finite_differences_and_each_net_has_its_own_loss(
    fairness: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = {"fairness": fairness, "beta_1": 3.0, "beta_2": 0.7, "omega": 0.0}
    learner = built("sellf_one_step", [0], features="a", **changes).double()
    batch = batch_of(torch.linspace(-1, 2, 14, dtype=torch.float64).unsqueeze(0))
    # c_g is not differentiated.
    fixed = torch.tensor([[0.3], [0.7]], dtype=torch.float64)
    monkeypatch.setattr(sellf_one_step, "confidence_weights", lambda *_: fixed)
    nets = learner.policy, learner.classifier
    for loss, own, other in ((learner.policy_loss, *nets), (learner.loss, *nets[::-1])):
        weights, others = tuple(own.parameters()), tuple(other.parameters())
        assert torch.autograd.gradcheck(lambda *_, loss=loss: loss(batch), weights)
        found = torch.autograd.grad(loss(batch).sum(), (*weights, *others), allow_unused=True)
        assert [gradient is None for gradient in found] == [False] * len(weights) + [True] * len(others)


def test_the_policies_that_decided_are_remembered_and_those_of_the_warm_up_are_not() -> None:
    learner: SellfOneStep = warmed(built("sellf_one_step", [0]))
    assert learner.past.added == 0
    people, _ = regional(SeedStreams([0], "crowd"), 20)
    _, chance = online_step(learner, people, torch.rand(1, 20))
    torch.testing.assert_close(learner.past.any_accepts(learner.policy.columns(people.x, people.s)), chance)
    assert not torch.allclose(learner.propensity(people.x, people.s, learner.streams), chance)


def test_log_space_keeps_small_chances() -> None:
    learner = with_linear_nets([0], past=(1.0,))
    x = torch.tensor([[-20.0, 40.0]])
    chance = learner.past.any_accepts(learner.policy.columns(x.unsqueeze(-1), torch.ones_like(x)))
    torch.testing.assert_close(chance, x.sigmoid())
