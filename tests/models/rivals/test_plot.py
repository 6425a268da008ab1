import copy
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fairall.data.people import Decided
from fairall.models.adaptation import AdaptedNet
from fairall.models.learner import Learner
from fairall.models.rivals.greedy import Greedy
from fairall.models.rivals.plot import AdOpt, AdOptConfig, Plot, PlotConfig
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, MakeSetting
from tests.models.conftest import BAD, KNOWN, MISJUDGED, first_decided, online_step, regional, same, warmed


@pytest.fixture
def plot(compose_config: ComposeConfig) -> PlotConfig:
    model = compose_config("model=plot").model
    return replace(model, clf_arch=[8], updates=20, clone_updates=40, batch_size=32, learning_rate=0.02)


@pytest.fixture
def adopt(compose_config: ComposeConfig) -> AdOptConfig:
    model = compose_config("model=adopt").model
    small = replace(model, clf_arch=[8], updates=20, clone_updates=40, batch_size=32, learning_rate=0.02)
    return replace(small, generator_arch=[8, 6], head_arch=[5], discriminator_arch=[4])


def history(learner: Learner, time_steps: int) -> tuple[Tensor, Tensor, Tensor]:
    """Policy, acceptance and region of the applicants after the warm-up, (T, E, N) each."""
    seeds = list(warmed(learner).setting.seeds)
    crowd, luck = SeedStreams(seeds, "crowd"), SeedStreams(seeds, "luck")
    rows = []
    for _ in range(time_steps):
        applicants, region = regional(crowd, 48)
        decided, policy = online_step(learner, applicants, luck.uniform(48))
        rows.append((policy, decided.accepted, region))
    policy, accepted, regions = (torch.stack(values) for values in zip(*rows, strict=True))
    return policy, accepted, regions


@pytest.mark.whole
def test_false_rejections_vanish_that_greedy_never_corrects(
    plot: PlotConfig, compose_config: ComposeConfig, two_features: MakeSetting
) -> None:
    given = two_features([0, 1, 2, 3], "cost.value=0.5")
    greedy = replace(
        compose_config("model=greedy").model, clf_arch=[8], updates=20, batch_size=32, learning_rate=0.02
    )
    policy, _, region = history(Greedy(greedy, given), 25)
    assert (policy[region == MISJUDGED] == 0).float().mean() > 0.95
    policy, accepted, region = history(Plot(plot, given), 25)
    assert (policy[:3][region[:3] == MISJUDGED] == 0).float().mean() > 0.5
    assert (policy[-5:][region[-5:] == MISJUDGED] == 0).float().mean() < 0.05
    assert accepted[region == BAD].float().mean() < 0.05
    assert accepted[region == BAD].any(), "nobody bad was ever a candidate whom the clone accepted"


def test_exploration_accepts_candidates_of_the_clone_and_changes_nothing(
    plot: PlotConfig, two_features: MakeSetting
) -> None:
    seeds = [0, 1, 2]
    learner = warmed(Plot(replace(plot, epsilon=0.3), two_features(seeds, "cost.value=0.5")))
    people, _ = regional(SeedStreams(seeds, "crowd"), 60)
    uniform = SeedStreams(seeds, "luck").uniform(60)
    policy = learner.propensity(people.x, people.s, SeedStreams(seeds, "propensity"))
    before = copy.deepcopy(learner.training_state())
    explored = learner.explore(people.x, people.s, policy, uniform)
    assert same(before, learner.training_state())
    assert torch.equal(explored, learner.explore(people.x, people.s, policy, uniform))
    torch.testing.assert_close(explored.unique(), torch.tensor([0.0, 0.3, 1.0]))
    assert torch.equal(explored == 1.0, policy == 1.0)
    more = (uniform < explored) & (policy == 0.0)
    assert torch.equal(more, (policy == 0.0) & (uniform < 0.3) & (explored > 0.0))
    assert more.any()
    everyone = learner.explore(people.x, people.s, policy, torch.zeros_like(uniform))
    nobody = learner.explore(people.x, people.s, policy, torch.ones_like(uniform))
    assert everyone.mean() > explored.mean() > nobody.mean()


@pytest.mark.whole
def test_recorded_propensities_give_unbiased_estimates(plot: PlotConfig, two_features: MakeSetting) -> None:
    seeds = list(range(250))
    learner = warmed(Plot(replace(plot, epsilon=0.3), two_features(seeds, "cost.value=0.5")))
    people, _ = regional(SeedStreams(seeds, "crowd"), 6)
    uniform = SeedStreams(seeds, "luck").uniform(6)
    policy = learner.propensity(people.x, people.s, SeedStreams(seeds, "propensity"))
    propensity = learner.explore(people.x, people.s, policy, uniform)
    accepted = uniform < propensity
    # Whom the clone accepts if they are candidates, given the numbers of the others.
    reachable = policy.clone()
    for i in range(6):
        as_candidate = uniform.clone()
        as_candidate[:, i] = 0.0
        reachable[:, i] = (learner.explore(people.x, people.s, policy, as_candidate)[:, i] > 0).float()
    assert 0.1 < reachable[policy == 0].mean() < 0.9
    worth = 0.5 + people.label
    target = (reachable * worth).sum(-1)
    weighted = torch.where(accepted, worth / propensity, 0.0).sum(-1)
    error = weighted - target
    assert error.mean().abs() < 3 * error.std() / len(seeds) ** 0.5
    plain = torch.where(accepted, worth, 0.0).sum(-1) - target
    assert plain.mean() < -5 * plain.std() / len(seeds) ** 0.5


def test_epsilon_decays_with_the_time_steps(plot: PlotConfig, two_features: MakeSetting) -> None:
    constant, decaying = (
        warmed(Plot(replace(plot, decay=decay), two_features([0]))) for decay in (False, True)
    )
    assert constant.epsilon == decaying.epsilon == 0.2
    for _ in range(3):
        constant.update(first_decided([0]))
        decaying.update(first_decided([0]))
    assert (constant.epsilon, decaying.epsilon) == (0.2, 0.1)


def applicants_of(
    learner: Plot | AdOpt, n: int, purpose: str = "crowd"
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x, s and region of people, and the propensities of the policy."""
    seeds = learner.setting.seeds
    people, region = regional(SeedStreams(seeds, purpose), n)
    return people.x, people.s, region, learner.propensity(people.x, people.s, SeedStreams(seeds, "p"))


@pytest.fixture
def learner(adopt: AdOptConfig, two_features: MakeSetting) -> AdOpt:
    """AdOpt after a warm-up, three seeds."""
    return warmed(AdOpt(adopt, two_features([0, 1, 2], "cost.value=0.5")))


def proposing(learner: AdOpt, p: Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the adapted classifier give the applicants the probabilities p, shape (E, N)."""
    monkeypatch.setattr(learner, "adapted", lambda x, s: p)


def test_candidates_are_whom_f_rejects_and_the_adapted_classifier_accepts(
    learner: AdOpt, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, s, region, policy = applicants_of(learner, 60)
    wanted = (region == MISJUDGED) | (torch.arange(60) < 6)  # few bad people, whom the clone rejects
    proposing(learner, torch.where(wanted, 0.5, 0.49), monkeypatch)  # c = 0.5 is accepted
    trained_on: list[Tensor] = []
    optimist = learner.optimist

    def observed(x: Tensor, s: Tensor, candidate: Tensor) -> AdOpt:
        trained_on.append(candidate)
        return optimist(x, s, candidate)

    monkeypatch.setattr(learner, "optimist", observed)
    explored = learner.explore(x, s, policy, torch.ones_like(s))
    (candidate,) = trained_on
    assert torch.equal(candidate, (policy == 0) & wanted)
    clone = optimist(x, s, candidate)
    by_clone = clone.propensity(x, s, clone.streams) == 1
    assert torch.equal(explored, ((policy == 1) | (candidate & by_clone)).float())
    assert (explored > policy).any()
    assert (candidate & ~by_clone).any()


def test_without_candidates_it_decides_as_greedy(learner: AdOpt, monkeypatch: pytest.MonkeyPatch) -> None:
    x, s, _, policy = applicants_of(learner, 60)
    proposing(learner, torch.zeros_like(s), monkeypatch)
    assert torch.equal(learner.explore(x, s, policy, torch.zeros_like(s)), policy)
    proposing(learner, torch.ones_like(s), monkeypatch)
    assert not torch.equal(learner.explore(x, s, policy, torch.zeros_like(s)), policy)


def test_decisions_are_functions_of_the_past_and_the_applicants(learner: AdOpt) -> None:
    x, s, _, policy = applicants_of(learner, 60)
    before = copy.deepcopy(learner.training_state())
    explored = learner.explore(x, s, policy, torch.zeros_like(s))
    assert same(before, learner.training_state())
    assert torch.equal(explored, learner.explore(x, s, policy, torch.ones_like(s)))
    assert set(explored.flatten().tolist()) == {0.0, 1.0}


def test_the_adapted_classifier_sees_labels_of_the_accepted_and_x_of_the_applicants(
    learner: AdOpt, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Decided, Decided]] = []
    loss = AdaptedNet.loss

    def observed(net: AdaptedNet, source: Decided, target: Decided) -> Tensor:
        seen.append((source, target))
        return loss(net, source, target)

    monkeypatch.setattr(AdaptedNet, "loss", observed)
    x, s, _, _ = applicants_of(learner, 9)
    learner.config = replace(learner.config, adaptation_updates=30, adaptation_batch=5)
    learner.adapted(x, s)
    assert len(seen) == 30
    known = learner.memory.rows()
    for e in range(3):
        pairs = {
            (*row.tolist(), label) for row, label in zip(known.x[e], known.label[e].tolist(), strict=True)
        }
        sources = {
            (*row.tolist(), label)
            for source, _ in seen
            for row, label in zip(source.x[e], source.label[e].tolist(), strict=True)
        }
        assert {label for *_, label in sources} == {0.0, 1.0}
        assert sources == pairs, "150 draws of 23 people"
        targets = {tuple(row.tolist()) for _, target in seen for row in target.x[e]}
        assert targets == {tuple(row.tolist()) for row in x[e]}
    assert all(source.accepted.all() and source.s.shape == (3, 5) for source, _ in seen)
    assert all(target.s.shape == (3, 5) for _, target in seen)


def test_it_is_trained_anew_at_every_time_step(learner: AdOpt, monkeypatch: pytest.MonkeyPatch) -> None:
    starts: list[Tensor] = []
    loss = AdaptedNet.loss

    def observed(net: AdaptedNet, source: Decided, target: Decided) -> Tensor:
        starts.append(net.generator.weights_and_biases()[0].detach().clone())
        return loss(net, source, target)

    monkeypatch.setattr(AdaptedNet, "loss", observed)
    updates = learner.config.adaptation_updates
    people, _ = regional(SeedStreams([0, 1, 2], "crowd"), 20)
    for _ in range(2):
        learner.adapted(people.x, people.s)
    online_step(learner, people, SeedStreams([0, 1, 2], "luck").uniform(20))
    learner.adapted(people.x, people.s)
    first, again, _, later = starts[::updates]
    assert torch.equal(first, again), "the same before an update"
    assert not torch.equal(first, starts[updates - 1])
    spread = first.std()
    assert (later - first).abs().mean() > 0.5 * spread, "other initial weights after it"
    assert (later - starts[3 * updates - 1]).abs().mean() > 0.5 * spread, "no warm start"


def test_the_adapted_classifier_learns_the_labels(learner: AdOpt) -> None:
    x, s, region, _ = applicants_of(learner, 60)
    learner.config = replace(learner.config, adaptation_updates=200, adaptation_rate=0.01)
    p = learner.adapted(x, s)
    assert p[region == KNOWN].mean() > 0.9
    assert p[region == BAD].mean() < 0.1
