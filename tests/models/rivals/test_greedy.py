from dataclasses import replace

import pytest
import torch

from fairall.config.schema import ExplorationConfig, ExplorationRule
from fairall.data.people import Decided
from fairall.online.process import Process
from fairall.runtime.randomness import SeedStreams
from tests.conftest import MakePeople
from tests.models.conftest import (
    MISJUDGED,
    applicants_of,
    built,
    propensities,
    regional,
    someone,
    stacked,
    taught,
    warmed,
)


def test_loss_is_the_cross_entropy_of_the_accepted_whatever_their_propensity(people: MakePeople) -> None:
    learner, decided = built("greedy", [0, 1], features="abcde"), someone(people(30), 1, [0, 1])
    p = learner.score(decided.x, decided.s, learner.streams).double()
    right = torch.where(decided.label > 0, p, 1 - p).log() * decided.accepted
    for propensity in (decided.propensity, decided.propensity / 9):
        loss = learner.loss(replace(decided, propensity=propensity)).double()
        torch.testing.assert_close(loss, -right.sum(1) / decided.accepted.sum(1), rtol=1e-4, atol=0)


@pytest.mark.parametrize("cost", [0.2, 0.5, 0.8])
def test_it_accepts_from_the_cost_on(cost: float, people: MakePeople) -> None:
    crowd, learner = people(60), built("greedy", [0, 1], f"cost.value={cost}", features="abcde")
    score = taught(learner, crowd, range(3)).score(*stacked(crowd), learner.streams)
    assert torch.equal(propensities(learner, crowd), (score >= cost).float())
    assert learner.rule.threshold == cost


@pytest.mark.parametrize(
    ("model", "updates"),
    [
        *((model, 3) for model in ("greedy", "epsilon_greedy", "plot", "adopt", "neural_ucb")),
        ("explore_exploit", 9),  # of two epochs of the warm-up and one time step
    ],
)
def test_adam_starts_anew_at_every_time_step_where_plots_authors_have_it_so(
    model: str, updates: int, people: MakePeople
) -> None:
    learner = taught(built(model, [0, 1], features="abcde", updates=3), people(20), range(2))
    assert all(steps == updates for steps in learner.optimiser.steps)


@pytest.mark.whole
@pytest.mark.parametrize("rule", ["epsilon", "bounded"])
def test_false_rejections_end_with_exploration(rule: str) -> None:
    seeds = [0, 1, 2]
    learner = warmed(built("greedy", seeds, "cost.value=0.5"))
    exploration = ExplorationConfig(ExplorationRule[rule], propensity=0.2)
    process = Process(learner, exploration)
    crowd = SeedStreams(seeds, "people")
    for _ in range(40):
        people, _ = regional(crowd, 30)
        decisions = process.decide(people)
        process.learn([Decided.reveal(people, decisions.propensity, decisions.accepted)])
        process.taken.add(decisions.accepted)
    _, _, region, policy = applicants_of(learner, 60)
    assert policy[region == MISJUDGED].mean() == pytest.approx(1.0, abs=0.05)
