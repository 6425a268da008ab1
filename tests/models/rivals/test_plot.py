import copy
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fairall.data.people import Decided
from fairall.models.learner import Learner, Setting
from fairall.models.rivals.greedy import Greedy
from fairall.models.rivals.plot import AdOpt, AdOptConfig, Plot, PlotConfig, Reversed, adversary_loss
from fairall.randomness import SeedStreams
from tests.conftest import ComposeConfig
from tests.models.conftest import BAD, MISJUDGED, first_decided, online_step, regional, same

MakeSetting = Callable[..., Setting]


@pytest.fixture
def plot(compose_config: ComposeConfig) -> PlotConfig:
    model = compose_config("model=plot").model
    return replace(model, clf_arch=[8], updates=20, clone_updates=40, batch_size=32, learning_rate=0.02)


@pytest.fixture
def adopt(compose_config: ComposeConfig) -> AdOptConfig:
    model = compose_config("model=adopt").model
    small = replace(model, clf_arch=[8], updates=20, clone_updates=40, batch_size=32, learning_rate=0.02)
    return replace(small, adversary_arch=[6])


def history(learner: Learner, time_steps: int) -> tuple[Tensor, Tensor, Tensor]:
    """Policy, acceptance and region of the applicants after the warm-up, (T, E, N) each."""
    seeds = list(learner.setting.seeds)
    learner.warm_up_epoch(first_decided(seeds), 0)
    learner.warm_up_epoch(first_decided(seeds), 1)
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


def warmed(learner: Plot) -> Plot:
    """After a warm-up, so that f rejects the regions `MISJUDGED` and `BAD`."""
    decided = first_decided(list(learner.setting.seeds))
    learner.warm_up_epoch(decided, 0)
    learner.warm_up_epoch(decided, 1)
    return learner


@pytest.mark.parametrize("method", [Plot, AdOpt])
def test_exploration_accepts_candidates_of_the_clone_and_changes_nothing(
    method: type[Plot], plot: PlotConfig, adopt: AdOptConfig, two_features: MakeSetting
) -> None:
    seeds = [0, 1, 2]
    config = replace(adopt if method is AdOpt else plot, epsilon=0.3)
    learner = warmed(method(config, two_features(seeds, "cost.value=0.5")))
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


def test_without_weight_the_adversary_changes_nothing(
    plot: PlotConfig, adopt: AdOptConfig, two_features: MakeSetting
) -> None:
    given = two_features([0, 1])
    learners = Plot(plot, given), AdOpt(replace(adopt, adversary_weight=0.0), given)
    people, _ = regional(SeedStreams([0, 1], "crowd"), 30)
    outcomes = []
    for learner in (*learners, AdOpt(replace(adopt, adversary_weight=3.0), given)):
        warmed(learner)
        decided, _ = online_step(learner, people, SeedStreams([0, 1], "luck").uniform(30))
        outcomes.append((decided.propensity, learner.score(people.x, people.s, learner.streams)))
    for of_plot, without in zip(*outcomes[:2], strict=True):
        torch.testing.assert_close(of_plot, without, rtol=0, atol=1e-4)
    assert (outcomes[2][1] - outcomes[0][1]).abs().max() > 1e-3


def test_the_adversary_descends_and_the_representation_ascends(
    adopt: AdOptConfig, two_features: MakeSetting
) -> None:
    learner = AdOpt(replace(adopt, adversary_weight=2.0), two_features([0, 1]))
    learner.warm_up_epoch(first_decided([0, 1]), 0)
    people, _ = regional(SeedStreams([0, 1], "crowd"), 40)
    rejected = torch.zeros(2, 40)
    learner.seen.add(Decided(people.x, people.s, rejected, rejected.bool(), rejected))
    (batch, *_) = learner.minibatches()

    def separation() -> Tensor:
        """The adversary's loss without reversal."""
        columns = torch.cat(
            [learner.classifier.columns(batch.x, batch.s), learner.classifier.columns(seen_x, seen_s)], dim=-1
        )
        hidden = learner.classifier.hidden(columns)
        guess = learner.adversary.forward_transposed(hidden).squeeze(1)
        of_batch = batch.s.shape[1]
        return adversary_loss(guess[:, :of_batch], guess[:, of_batch:], batch.accepted)

    seen_x, seen_s = vars(batch)["seen_x"], vars(batch)["seen_s"]
    first, judge = next(learner.classifier.parameters()), next(learner.adversary.parameters())
    whole = torch.autograd.grad(learner.loss(batch).sum(), [first, judge])
    learner.config = replace(learner.config, adversary_weight=0.0)
    alone = torch.autograd.grad(learner.loss(batch).sum(), [first, judge])
    plain = torch.autograd.grad(separation().sum(), [first, judge])
    assert plain[0].abs().max() > 1e-3
    torch.testing.assert_close(whole[0], alone[0] - 2.0 * plain[0], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(whole[1], plain[1])
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    Reversed.apply(x, 0.5).square().sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [-1.0, -2.0]


def test_rejected_people_reach_the_adversary_and_not_the_classifier(
    plot: PlotConfig, adopt: AdOptConfig, two_features: MakeSetting
) -> None:
    given = two_features([0])
    scores = []
    for method in (Plot, AdOpt):
        for shift in (0.0, 5.0):
            decided = first_decided([0])
            decided.accepted[:, 20:] = False
            learner = AdOpt(adopt, given) if method is AdOpt else Plot(plot, given)
            apart = torch.where(decided.accepted, 0.0, shift).unsqueeze(-1)
            learner.warm_up_epoch(replace(decided, x=decided.x + apart), 0)
            scores.append(learner.classifier.logit(decided.x[:, :20], decided.s[:, :20]).detach())
    assert torch.equal(scores[0], scores[1])
    assert (scores[2] - scores[3]).abs().max() > 1e-3
