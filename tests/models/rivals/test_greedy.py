from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fairall.config.schema import ExplorationConfig, ExplorationRule
from fairall.data.features import Feature, Kind, Schema
from fairall.data.people import Decided
from fairall.models.classifier import Remembering, RememberingConfig
from fairall.models.learner import Setting
from fairall.models.rivals.greedy import Greedy
from fairall.online.process import Process
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, MakePeople, MakeSetting
from tests.models.conftest import propensities, someone, taught


@pytest.fixture
def config(compose_config: ComposeConfig) -> RememberingConfig:
    model = compose_config("model=greedy").model
    return replace(model, clf_arch=[8], updates=4, batch_size=32, learning_rate=0.01)


def test_loss_is_the_cross_entropy_of_the_accepted_whatever_their_propensity(
    config: RememberingConfig, setting: MakeSetting, people: MakePeople
) -> None:
    learner = Greedy(config, setting([0, 1]))
    decided = someone(people(30), 1, [0, 1])
    with torch.no_grad():
        p = learner.score(decided.x, decided.s, SeedStreams([0, 1], "p")).double()
        loss = learner.loss(decided)
        assert torch.equal(loss, learner.loss(replace(decided, propensity=decided.propensity / 9)))
    right = torch.where(decided.label > 0, p, 1 - p).log()
    expected = [-own[taken].mean().item() for own, taken in zip(right, decided.accepted, strict=True)]
    assert loss.tolist() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("cost", [0.2, 0.5, 0.8])
def test_it_accepts_from_the_cost_on(
    cost: float, config: RememberingConfig, setting: MakeSetting, people: MakePeople
) -> None:
    crowd, learner = people(60), Greedy(config, setting([0, 1], f"cost.value={cost}"))
    taught(learner, crowd, range(3))
    x, s = crowd.x.expand(2, -1, -1), crowd.s.expand(2, -1)
    score = learner.score(x, s, SeedStreams([0, 1], "p"))
    assert torch.equal(propensities(learner, crowd), (score >= cost).float())
    assert learner.rule.threshold == cost


def test_it_learns_from_all_accepted_so_far(
    config: RememberingConfig, setting: MakeSetting, people: MakePeople
) -> None:
    crowd, learner = people(60), Greedy(config, setting([0, 1]))
    taught(learner, crowd, range(4))
    expected = sum(someone(crowd, step, [0, 1]).accepted.sum(-1) for step in range(4))
    assert isinstance(expected, Tensor)
    assert torch.equal(learner.memory.counts, expected)


@pytest.mark.parametrize(
    ("model", "updates"),
    [
        *((model, 3) for model in ("greedy", "epsilon_greedy", "plot", "adopt", "neural_ucb")),
        ("explore_exploit", 9),  # of two epochs of the warm-up and one time step
    ],
)
def test_adam_starts_anew_at_every_time_step_where_plots_authors_have_it_so(
    model: str, updates: int, compose_config: ComposeConfig, setting: MakeSetting, people: MakePeople
) -> None:
    config = compose_config(f"model={model}", "model.updates=3", "model.batch_size=8").model
    learner = taught(config.build(setting([0, 1])), people(20), range(2))
    assert isinstance(learner, Remembering)
    assert all(steps == updates for steps in learner.optimiser.steps)


def late_acceptance(rule: ExplorationRule, config: RememberingConfig, given: Setting) -> Tensor:
    """Share of people of kind x = 1 whom the policy accepts after 60 time steps, shape (E,).

    A label is 1 with probability 0.8 for either kind, but in the warm-up all of kind x = 1 happened to have
    the label 0, and the others 1.
    """
    seeds = list(given.seeds)
    learner = Greedy(replace(config, updates=10), replace(given, schema=Schema([Feature("x", Kind.REAL)])))
    process = Process(learner, ExplorationConfig(rule, propensity=0.2))
    streams = SeedStreams(seeds, "toy")

    def people() -> Decided:
        kind, group, label, decision = streams.uniform(4, 30).unbind(1)
        x, s = 2.0 * (kind < 0.5) - 1.0, 2.0 * (group < 0.5) - 1.0
        everybody = torch.ones_like(s, dtype=torch.bool)
        return Decided(x.unsqueeze(-1), s, decision, everybody, (label < 0.8).float())

    unlucky = people()
    unlucky = replace(unlucky, propensity=torch.ones_like(unlucky.s), label=(unlucky.x[..., 0] < 0).float())
    for epoch in range(30):
        learner.warm_up_epoch(unlucky, epoch)
    assert (learner.propensity(unlucky.x, unlucky.s, streams) == unlucky.label).all()
    for _ in range(60):
        one = people()
        uniform = one.propensity
        propensity = learner.propensity(one.x, one.s, streams)
        propensity = process.explored(one.x, one.s, propensity)
        accepted = uniform < propensity
        decided = replace(one, propensity=propensity, accepted=accepted, label=one.label * accepted)
        process.learn([decided])
        process.taken.add(accepted)
    ones = torch.ones(len(seeds), 2, 1)
    return learner.propensity(ones, torch.tensor([1.0, -1.0]).expand(len(seeds), -1), streams).mean(-1)


@pytest.mark.whole
def test_false_rejections_last_without_exploration_and_end_with_it(
    config: RememberingConfig, setting: MakeSetting
) -> None:
    given = setting([0, 1, 2])
    assert (late_acceptance(ExplorationRule.none, config, given) == 0).all()
    assert (late_acceptance(ExplorationRule.epsilon, config, given) == 1).all()
    assert (late_acceptance(ExplorationRule.bounded, config, given) == 1).all()
