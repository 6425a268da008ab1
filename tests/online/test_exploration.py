"""Rules of exploration: whom they accept, with what propensity, and what becomes known."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from fairall.config.schema import ExplorationConfig, ExplorationRule, ProtocolConfig, ScheduleConfig
from fairall.data.features import Schema
from fairall.data.people import Decided
from fairall.models.learner import DecisionRule, Setting
from fairall.online.process import Process, lower_bound
from fairall.runtime.randomness import SeedStreams
from tests.conftest import Shown, run_online, training_of

THRESHOLD = 0.5
BOUNDED = ExplorationConfig(ExplorationRule.bounded, propensity=0.25)
EPSILON = ExplorationConfig(ExplorationRule.epsilon, propensity=0.25)


class Scores(Shown):
    """Accepts where the first feature is at least `THRESHOLD`."""

    rule = DecisionRule(THRESHOLD, drawn=False)

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return x[..., 0]


def process(config: ExplorationConfig, seeds: int = 1) -> Process:
    """What decides by scores, and explores."""
    learner = Scores()
    learner.setting = Setting(Schema([]), 0.5, range(seeds), ScheduleConfig(), ProtocolConfig())
    return Process(learner, config)


def explored(own: Process, score: Tensor, s: Tensor, steps_done: int = 0) -> Tensor:
    own.taken.steps = steps_done
    return own.explored(score.unsqueeze(-1), s, (score >= THRESHOLD).float())


def test_lower_bound_is_that_of_trying_all_scores() -> None:
    generator = torch.Generator().manual_seed(1)
    for n in (1, 2, 3, 8, 30) * 40:
        score = torch.randint(0, 12, (n,), generator=generator) / 12  # with ties
        weight = 1 / (0.05 + torch.rand(n, generator=generator))
        below = weight[score < 0.51].sum()
        # The least score of F₀ with F₀(score) ≥ 1 − F₀(threshold).
        reached = [one for one in score if weight[score <= one].sum() >= (1 - 1e-6) * weight.sum() - below]
        assert lower_bound(score, weight, 0.51) == min(reached)


def test_bounds_are_of_each_group_and_seed_and_exploring_changes_no_state() -> None:
    # Before any label everybody below the threshold may be accepted.
    raised = explored(process(BOUNDED), torch.tensor([[0.0, 0.3, 0.49, 0.5, 1.0]]), torch.ones(1, 5))
    torch.testing.assert_close(raised, torch.tensor([[0.25, 0.25, 0.25, 1.0, 1.0]]))
    own, grid = process(BOUNDED, 2), torch.arange(100.0).repeat(2) / 100
    s = torch.cat([torch.ones(100), -torch.ones(100)]).expand(2, -1)
    # F₀ of S = +1 is uniform on [0, 0.8], that of S = −1 on [0, 0.5); nobody of seed 1 has label 0.
    score = torch.where(s > 0, 0.8 * grid, grid / 2)
    label = torch.tensor([[0.0], [1.0]]).expand(2, 200)
    own.learn([Decided(score.unsqueeze(-1), s, torch.ones_like(s), s == s, label)])
    before = own.memory.state_dict()
    seen = torch.tensor([[0.28, 0.32, 0.05, 0.49, 0.51]]).expand(2, -1)
    everybody = [0.25, 0.25, 0.25, 0.25, 1.0]
    # The shares below 0.5 and 0.3 are 0.625 and 0.375; all of the others' F₀ is below the threshold.
    for group, expected in ((1, [0.0, 0.25, 0.0, 0.25, 1.0]), (-1, everybody)):
        for _ in range(2):
            found = explored(own, seen, group * torch.ones(2, 5))
            torch.testing.assert_close(found, torch.tensor([expected, everybody]))
    torch.testing.assert_close(before, own.memory.state_dict(), rtol=0, atol=0)


def test_the_rejected_count_to_the_extent_that_their_score_says() -> None:
    """Of uniform scores that are the chances of a good label, F₀(v) = 1 − (1 − v)²: the bound is 1 − √¾."""
    own, score = process(BOUNDED), torch.linspace(0.0, 1.0, 1000)[None]
    s, accepted = torch.ones_like(score), score >= THRESHOLD
    own.learn([Decided(score.unsqueeze(-1), s, s, accepted, score * accepted)])
    least = score[explored(own, score, s) == 0.25].min().item()
    assert least == pytest.approx(1.0 - 0.75**0.5, abs=2e-3)


def test_where_decisions_may_not_depend_on_s_bounds_are_of_everybody() -> None:
    own = process(BOUNDED)
    own.learner.reads_s = False  # type: ignore[misc]
    score, s = torch.arange(200.0).view(1, -1) / 333, torch.tensor([[1.0, -1.0]]).repeat(1, 100)
    label = ((s < 0) & (score < THRESHOLD)).float()  # so that the bounds of the groups would differ
    own.learn([Decided(score.unsqueeze(-1), s, torch.ones_like(s), s == s, label)])
    found = explored(own, score, s)
    assert torch.equal(found, explored(own, score, -s))
    assert {*found[0].tolist()} == {0.0, 0.25, 1.0}


def test_epsilon_raises_all_and_decays_by_the_root_of_the_time_step() -> None:
    score, s = torch.tensor([[0.1, 0.5]]), torch.ones(1, 2)
    decaying, constant = process(replace(EPSILON, decay=True)), process(EPSILON)
    for step in (1, 4, 25):
        raised = explored(decaying, score, s, steps_done=step - 1)
        torch.testing.assert_close(raised, torch.tensor([[0.25 / step**0.5, 1.0]]))
        assert explored(constant, score, s, steps_done=step - 1)[0].tolist() == [0.25, 1.0]
    by_chance = torch.tensor([[0.0, 0.4]])
    raised = constant.explored(score.unsqueeze(-1), s, by_chance)
    torch.testing.assert_close(raised, torch.tensor([[0.25, 0.55]]))


def test_a_method_of_deterministic_decisions_explores() -> None:
    words = "model=fairlog", "exploration=epsilon", "model.decision=deterministic", "exploration.decay=false"
    own = training_of(*words, "evaluation.decisions=true", "exploration.propensity=0.25")
    history = run_online(own, 6)
    assert {*history.steps["propensity"].unique().tolist()} == {0.25, 1.0}
    explored = history.steps["propensity"] < 1
    assert history.steps["accepted"][explored].float().mean().item() == pytest.approx(0.25, abs=0.08)
    assert history.steps["accepted"][~explored].all()
    # What is measured is the policy, without exploration.
    people = own.evaluation.stacked
    policy = own.learner.propensity(people.x, people.s, SeedStreams([0, 1], "p"))
    torch.testing.assert_close(history.measured["acceptance"][-1], policy.mean(-1))
