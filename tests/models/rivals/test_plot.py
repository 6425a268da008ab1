import functools
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus

from fairall.data.people import Decided
from fairall.models.classifier import accepted_cross_entropy
from fairall.models.objectives import ips_weight
from fairall.models.rivals.plot import AdOpt, Plot
from fairall.nn.stacked import StackedMLP
from fairall.runtime.randomness import SeedStreams
from tests.models.conftest import applicants_of, built, first_decided, regional, warmed


def test_exploration_accepts_candidates_of_the_clone_with_their_chance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner: Plot = warmed(built("plot", [0, 1, 2], "cost.value=0.5"))
    x, s, _, policy = applicants_of(learner, 60)
    uniform = SeedStreams([0, 1, 2], "luck").uniform(60)
    chance = torch.tensor([0.0, 0.3, 1.0])[torch.arange(60) % 3].expand_as(s)
    monkeypatch.setattr(learner, "chance", lambda *_: chance)
    candidate = (policy == 0) & (uniform < chance)
    by_clone = learner.optimist(x, s, candidate).propensity(x, s, learner.streams)
    explored = learner.explore(x, s, policy, uniform)
    assert torch.equal(explored, torch.where(policy == 1, policy, chance * by_clone))
    assert set(by_clone[candidate].tolist()) == {0.0, 1.0}
    of_nobody = learner.optimist(x, s, candidate & False).propensity(x, s, learner.streams)
    assert of_nobody[candidate].sum() < by_clone[candidate].sum()


def test_recorded_propensities_give_unbiased_estimates() -> None:
    """Of Σ (½ + ỹ) over those whom f accepts or, where they are candidates, the clone."""
    seeds = range(250)
    learner: Plot = warmed(built("plot", seeds, "cost.value=0.5", epsilon=0.3))
    people, _ = regional(SeedStreams(seeds, "crowd"), 6)
    uniform = SeedStreams(seeds, "luck").uniform(6)
    policy = learner.propensity(people.x, people.s, learner.streams)
    explored = functools.partial(learner.explore, people.x, people.s, policy)
    # Whom the clone accepts if they are candidates, given the numbers of the others.
    each = [explored(uniform.index_fill(1, torch.tensor(i), 0.0))[:, i] > 0 for i in range(6)]
    reachable, propensity = torch.stack(each, dim=1).float(), explored(uniform)
    assert 0.1 < reachable[policy == 0].mean() < 0.9
    accepted = uniform < propensity
    for weight in (ips_weight(propensity, accepted, None), torch.ones_like(uniform)):
        error = ((0.5 + people.label) * (accepted * weight - reachable)).sum(-1)
        z = error.mean() / (error.std() / len(seeds) ** 0.5)
        assert abs(z) < 3 if (weight > 1).any() else z < -5


@pytest.mark.parametrize(("decay", "expected"), [(False, 0.2), (True, 0.1)])
def test_epsilon_decays_with_the_time_steps(decay: bool, expected: float) -> None:
    learner: Plot = warmed(built("plot", [0], decay=decay))
    anyone = torch.zeros(1, 1)
    assert learner.chance(anyone, anyone).item() == pytest.approx(0.2)
    for _ in range(3):
        learner.update(first_decided([0]))
    assert learner.chance(anyone, anyone).item() == pytest.approx(expected)


@pytest.fixture
def learner() -> AdOpt:
    """AdOpt after a warm-up, two seeds."""
    learner: AdOpt = warmed(built("adopt", [0, 1], "cost.value=0.5"))
    return learner


def test_candidates_are_whom_the_adapted_classifier_accepts(
    learner: AdOpt, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = torch.tensor([[0.4, 0.5, 0.6]])
    monkeypatch.setattr(learner, "adapted", lambda *_: p)
    assert learner.chance(p, p).tolist() == [[0.0, 1.0, 1.0]]


def labelled(n: int, purpose: str, shift: float = 0.0) -> Decided:
    """Accepted people of two replicates whose label is whether the second feature is positive."""
    streams = SeedStreams([0, 1], purpose)
    x = streams.normal(n, 2) + torch.tensor([shift, 0.0])
    s = 2.0 * (streams.uniform(n) < 0.5) - 1.0
    return Decided(x, s, torch.ones_like(s), s != 0, (x[..., 1] > 0).float())


def test_the_adapted_classifier_is_trained_anew_on_the_accepted_and_the_applicants(
    learner: AdOpt, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, drawn = list[Tensor](), list[tuple[Tensor, Tensor]]()
    loss = learner.adaptation_loss

    def kept(nets: list[StackedMLP], source: Decided, target: Decided) -> Tensor:
        first.append(nets[0].last.weight.detach().clone())
        drawn.append((source.x, target.x))
        return loss(nets, source, target)

    monkeypatch.setattr(learner, "adaptation_loss", kept)
    learner.config = replace(learner.config, adaptation_updates=30, adaptation_batch=5)
    applicants = labelled(9, "applicants")
    for of in range(3):
        learner.adapted(applicants.x, applicants.s)
        if of == 1:
            learner.train_classifier()
    for batches, known in zip(zip(*drawn, strict=True), (learner.memory.rows(), applicants), strict=True):
        equal = (torch.cat(batches, 1).unsqueeze(2) == known.x.unsqueeze(1)).all(-1)
        assert equal.shape[1] == 3 * 30 * 5
        assert equal.any(1).all()
        assert equal.any(2).all()
    same = [torch.equal(first[0], first[i]) for i in (30, 29, 60)]
    assert same == [True, False, False], "others after training, and after an update of f"


@pytest.mark.parametrize("accepts", [True, False])
def test_the_discriminator_descends_and_the_generator_ascends(learner: AdOpt, accepts: bool) -> None:
    source, target = labelled(12, "source"), labelled(7, "target", 1.0)
    source = replace(source, accepted=source.accepted & accepts, label=source.label * accepts)
    generator, classifier, judge = nets = learner.nets(SeedStreams([0, 1], "adapted"))
    representations = [
        generator.forward_transposed(learner.classifier.columns(of.x, of.s)).relu() for of in (source, target)
    ]
    of_source, of_target = (judge.forward_transposed(own).squeeze(1) for own in representations)
    separation = accepts * (softplus(of_source).mean(-1) + softplus(-of_target).mean(-1))  # without reversal
    logit = classifier.forward_transposed(representations[0]).squeeze(1)
    of_labels = accepted_cross_entropy(logit, source)
    loss = learner.adaptation_loss(nets, source, target)
    torch.testing.assert_close(loss, of_labels + separation)
    for net, sign in ((generator, -1.0), (classifier, 1.0), (judge, 1.0)):
        found, expected = (
            torch.autograd.grad(of.sum(), [*net.parameters()], retain_graph=True)
            for of in (loss, of_labels + sign * separation)
        )
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-6)
