from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from fairall.data.people import Decided
from fairall.models.classifier import accepted_cross_entropy
from fairall.models.rivals.plot import AdaptedNet, AdOpt, Plot, discriminator_loss
from fairall.runtime.randomness import SeedStreams
from tests.models.conftest import BAD, KNOWN, MISJUDGED, first_decided, regional, warmed
from tests.models.rivals.test_rivals import applicants_of, built


def plot(seeds: list[int]) -> Plot:
    learner: Plot = warmed(built("plot", seeds, "cost.value=0.5", epsilon=0.3))
    return learner


Observe = Callable[[Any, str], list[Any]]


@pytest.fixture
def observe(monkeypatch: pytest.MonkeyPatch) -> Observe:
    """Keeps the arguments that a method is called with."""

    def observed(owner: Any, name: str) -> list[Any]:
        seen: list[Any] = []
        method = getattr(owner, name)

        def kept(*arguments: Any) -> Any:
            seen.append(arguments)
            return method(*arguments)

        monkeypatch.setattr(owner, name, kept)
        return seen

    return observed


def test_exploration_accepts_candidates_of_the_clone(observe: Observe) -> None:
    learner = plot([0, 1, 2])
    trained_on = observe(learner, "optimist")
    x, s, _, policy = applicants_of(learner, 60)
    uniform = SeedStreams([0, 1, 2], "luck").uniform(60)
    explored = learner.explore(x, s, policy, uniform)
    ((_, _, candidate),) = trained_on
    assert torch.equal(candidate, (policy == 0.0) & (uniform < 0.3))
    torch.testing.assert_close(explored.unique(), torch.tensor([0.0, 0.3, 1.0]))
    assert torch.equal(explored == 1.0, policy == 1.0)
    more = (uniform < explored) & (policy == 0.0)
    assert torch.equal(more, candidate & (explored > 0.0))
    assert more.any()
    everyone, nobody = (learner.explore(x, s, policy, torch.full_like(s, of)).mean() for of in (0.0, 1.0))
    assert everyone > explored.mean() > nobody


@pytest.mark.whole
def test_recorded_propensities_give_unbiased_estimates() -> None:
    seeds = list(range(250))
    learner, people = plot(seeds), regional(SeedStreams(seeds, "crowd"), 6)[0]
    uniform = SeedStreams(seeds, "luck").uniform(6)
    policy = learner.propensity(people.x, people.s, learner.streams)

    def explored(uniform: Tensor) -> Tensor:
        return learner.explore(people.x, people.s, policy, uniform)

    propensity = explored(uniform)
    accepted = uniform < propensity
    # Whom the clone accepts if they are candidates, given the numbers of the others.
    each = [explored(torch.where(torch.arange(6) == i, 0.0, uniform))[:, i] for i in range(6)]
    reachable = torch.where(policy == 0, (torch.stack(each, dim=1) > 0).float(), policy)
    assert 0.1 < reachable[policy == 0].mean() < 0.9
    worth = 0.5 + people.label
    of_sum = 1.0 / len(seeds) ** 0.5
    for weight, unbiased in ((1.0 / propensity, True), (torch.ones_like(propensity), False)):
        error = (torch.where(accepted, worth * weight, 0.0) - reachable * worth).sum(-1)
        z = error.mean() / (error.std() * of_sum)
        assert abs(z) < 3 if unbiased else z < -5


def test_epsilon_decays_with_the_time_steps() -> None:
    learners = [warmed(built("plot", [0], decay=decay)) for decay in (False, True)]
    assert [learner.epsilon for learner in learners] == [0.2, 0.2]
    for learner in learners * 3:
        learner.update(first_decided([0]))
    assert [learner.epsilon for learner in learners] == [0.2, 0.1]


@pytest.fixture
def learner() -> Any:
    """AdOpt after a warm-up, three seeds."""
    return warmed(built("adopt", [0, 1, 2], "cost.value=0.5"))


def test_candidates_are_whom_f_rejects_and_the_adapted_classifier_accepts(
    learner: AdOpt, observe: Observe, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, s, region, policy = applicants_of(learner, 60)
    wanted = (region == MISJUDGED) | (torch.arange(60) < 6)  # few bad people, whom the clone rejects
    optimist, trained_on = learner.optimist, observe(learner, "optimist")
    adapted = torch.where(wanted, 0.5, 0.49)  # c = 0.5 is accepted
    monkeypatch.setattr(learner, "adapted", lambda x, s: adapted)
    explored = learner.explore(x, s, policy, torch.ones_like(s))
    ((_, _, candidate),) = trained_on
    assert torch.equal(candidate, (policy == 0) & wanted)
    by_clone = optimist(x, s, candidate).propensity(x, s, learner.streams) == 1
    assert torch.equal(explored, ((policy == 1) | (candidate & by_clone)).float())
    assert (explored > policy).any()
    assert (candidate & ~by_clone).any()
    adapted = torch.zeros_like(s)
    assert torch.equal(learner.explore(x, s, policy, s), policy), "as Greedy without candidates"


def test_the_adapted_classifier_sees_labels_of_the_accepted_and_x_of_the_applicants(
    learner: AdOpt, observe: Observe
) -> None:
    seen = observe(AdaptedNet, "loss")
    x, s, _, _ = applicants_of(learner, 9)
    learner.config = replace(learner.config, adaptation_updates=30, adaptation_batch=5)
    learner.adapted(x, s)
    assert len(seen) == 30
    _, sources, targets = zip(*seen, strict=True)
    assert all(source.accepted.all() for source in sources)
    assert {of.s.shape for of in (*sources, *targets)} == {(3, 5)}
    known = learner.memory.rows()
    for batches, of in ((sources, known.x), (targets, x)):
        drawn = torch.cat([batch.x for batch in batches], dim=1)
        equal = (drawn.unsqueeze(2) == of.unsqueeze(1)).all(-1)  # 150 draws of 23 people, or of 9
        assert (equal.sum(2) == 1).all()
        assert equal.any(1).all()
        if batches is sources:
            label = torch.cat([source.label for source in sources], dim=1)
            assert torch.equal((equal * known.label.unsqueeze(1)).sum(2), label)
            assert label.unique().tolist() == [0.0, 1.0]


def test_it_is_trained_anew_at_every_time_step(learner: AdOpt, monkeypatch: pytest.MonkeyPatch) -> None:
    weights: list[Tensor] = []

    def kept(net: AdaptedNet, *batches: Decided) -> None:
        weights.append(net.generator.weights_and_biases()[0].detach().clone())
        descend(net, *batches)

    descend = AdaptedNet.descend
    monkeypatch.setattr(AdaptedNet, "descend", kept)
    people, _ = regional(SeedStreams([0, 1, 2], "crowd"), 20)
    for _ in range(2):
        learner.adapted(people.x, people.s)
    learner.train_classifier()
    learner.adapted(people.x, people.s)
    (first, *_, trained), (again, *_), (later, *_) = (weights[i : i + 50] for i in (0, 50, 100))
    assert torch.equal(first, again), "the same before an update"
    assert not torch.equal(first, trained)
    for other in (first, trained):
        assert (later - other).abs().mean() > 0.5 * first.std(), (
            "other initial weights after it, no warm start"
        )


def test_the_adapted_classifier_learns_the_labels(learner: AdOpt) -> None:
    x, s, region, _ = applicants_of(learner, 60)
    learner.config = replace(learner.config, adaptation_updates=200, adaptation_rate=0.01)
    p = learner.adapted(x, s)
    assert p[region == KNOWN].mean() > 0.9
    assert p[region == BAD].mean() < 0.1


@pytest.fixture
def net() -> AdaptedNet:
    """Of two replicates."""
    learner = built("adopt", [0, 1], adaptation_rate=0.003, discriminator_rate=0.015)
    return AdaptedNet(learner.config, learner.setting, SeedStreams([0, 1], "adapted"))


def labelled(n: int, purpose: str, shift: float = 0.0) -> Decided:
    """Accepted people of two replicates whose label is whether the second feature is positive."""
    streams = SeedStreams([0, 1], purpose)
    x = streams.normal(n, 2) + torch.tensor([shift, 0.0])
    s = 2.0 * (streams.uniform(n) < 0.5) - 1.0
    sure = torch.ones_like(s)
    return Decided(x, s, sure, sure > 0, (x[..., 1] > 0).float())


def test_the_discriminator_descends_and_the_generator_ascends(net: AdaptedNet) -> None:
    source, target = labelled(12, "source"), labelled(7, "target", 1.0)
    of_source, of_target = (
        net.discriminator.forward_transposed(net.representation(some.x, some.s)).squeeze(1)
        for some in (source, target)
    )
    separation = discriminator_loss(of_source, of_target, source.accepted)  # without reversal
    of_labels = accepted_cross_entropy(net.logit(source.x, source.s), source)
    loss = net.loss(source, target)
    torch.testing.assert_close(loss, of_labels + separation)
    generator, judge = list(net.generator.parameters()), list(net.discriminator.parameters())
    whole = torch.autograd.grad(loss.sum(), [*generator, *judge], retain_graph=True)
    reversed_ = torch.autograd.grad((of_labels - separation).sum(), generator, retain_graph=True)
    apart = torch.autograd.grad(separation.sum(), [*generator, *judge])
    assert apart[0].abs().max() > 1e-3
    torch.testing.assert_close(whole, (*reversed_, *apart[len(generator) :]), rtol=1e-4, atol=1e-6)


def test_the_discriminator_loss_is_that_of_numbers() -> None:
    of_source, of_target = torch.tensor([[0.5, -1.0]]), torch.tensor([[2.0]])
    chance = torch.cat([of_source, of_target], dim=1).sigmoid()
    expected = -(1 - chance[:, :2]).log().mean(-1) - chance[:, 2].log()
    for accepted in (1.0, 0.0):
        found = discriminator_loss(of_source, of_target, torch.full((1, 2), accepted) > 0)
        torch.testing.assert_close(found, accepted * expected)


def test_what_the_target_shares_remains_and_the_rest_is_hidden(net: AdaptedNet) -> None:
    for step in range(400):
        net.descend(labelled(32, f"source {step}"), labelled(32, f"target {step}", 3.0))
    target = labelled(500, "more", 3.0)
    right = (net.logit(target.x, target.s) > 0) == (target.label > 0)
    assert (right.float().mean(-1) > 0.9).all()
