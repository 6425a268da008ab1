"""Rules of exploration: whom they accept, with what propensity, and what becomes known."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from fairall.config.checks import check_values
from fairall.config.schema import ExplorationConfig, ExplorationRule
from fairall.data.people import Decided
from fairall.errors import FairAllError
from fairall.models.learner import DecisionRule
from fairall.online.exploration import Exploration, lower_bound
from fairall.online.history import Taken
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, Shown, assert_resumed_alike, run_online, training_of

THRESHOLD = 0.5
BOUNDED = ExplorationConfig(ExplorationRule.bounded, propensity=0.25)
EPSILON = ExplorationConfig(ExplorationRule.epsilon, propensity=0.25)


class Scores(Shown):
    """Accepts where the first feature is at least `THRESHOLD`."""

    rule = DecisionRule(THRESHOLD, drawn=False)

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return x[..., 0]


def scored(score: Tensor, s: Tensor, label: Tensor, **values: Tensor) -> Decided:
    """People of given score, shape (E, B), accepted with certainty unless given otherwise."""
    sure: dict[str, Any] = {"propensity": torch.ones_like(score), "accepted": torch.ones_like(score) > 0}
    return Decided(x=score.unsqueeze(-1), s=s, label=label, **(sure | values))


def explored(rule: Exploration, score: Tensor, s: Tensor, steps_done: int = 0) -> Tensor:
    taken = Taken(len(score))
    x = score.unsqueeze(-1)
    learner = Scores()
    taken.steps = steps_done
    return rule.explored(learner, x, s, learner.propensity(x, s, rule.streams), taken)


def by_hand(score: Tensor, weight: Tensor, threshold: float) -> Tensor:
    """The least score of F₀ with F₀(score) ≥ 1 − F₀(threshold)."""
    mass = weight.sum()
    below = weight[score < threshold].sum()
    of_f0 = score[weight > 0].sort().values
    reached = [bound for bound in of_f0 if weight[score <= bound].sum() >= mass - below - 1e-7 * mass]
    return reached[0] if len(of_f0) else torch.tensor(0.0)


def test_lower_bound_is_that_of_trying_all_scores() -> None:
    generator = torch.Generator().manual_seed(1)
    for n in (1, 2, 3, 8, 30):
        score = torch.randint(0, 12, (40, n), generator=generator) / 12  # with ties
        weight = 1 / (0.05 + torch.rand(40, n, generator=generator))
        weight = weight * (torch.rand(40, n, generator=generator) < 0.6)
        found = lower_bound(score, weight, 0.51).squeeze(-1)
        expected = [by_hand(*rows, 0.51) for rows in zip(score.double(), weight.double(), strict=True)]
        torch.testing.assert_close(found, torch.stack(expected).float())


def test_lower_bound_of_known_distributions() -> None:
    generator = torch.Generator().manual_seed(2)
    uniform = torch.rand(2, 40_000, generator=generator)
    normal = 0.5 + 0.1 * torch.randn(1, 40_000, generator=generator)
    # Weights undo that few low scores are known.
    propensity = torch.where(uniform < 0.5, 0.1, 1.0)
    known = torch.rand(2, 40_000, generator=generator) < propensity
    for score, weight, threshold, expected, atol in (
        # F₀(LB) = 1 − F₀(θ): of a symmetric distribution, the point opposite to the threshold.
        (uniform, torch.ones_like(uniform), 0.8, 0.2, 0.01),
        (normal, torch.ones_like(normal), 0.58, 0.42, 0.01),
        # Of the exponential distribution, 1 − exp(−LB) = exp(−θ).
        (-torch.log1p(-uniform), torch.ones_like(uniform), 1.2, -math.log1p(-math.exp(-1.2)), 0.02),
        (uniform, known / propensity, 0.8, 0.2, 0.02),
        (torch.tensor([[0.05, 0.2, 0.3, 0.0]]), torch.tensor([[0.0, 1.0, 2.0, 0.0]]), 0.5, 0.2, 1e-6),
    ):
        bound = lower_bound(score, weight, threshold)
        torch.testing.assert_close(bound, torch.full_like(bound, expected), atol=atol, rtol=0)
    assert (lower_bound(uniform, known.float(), 0.8) > 0.5).all()
    # Where most of F₀ is above the threshold nobody is between.
    assert lower_bound(torch.tensor([[0.1, 0.6, 0.7, 0.8]]), torch.ones(1, 4), 0.5).item() >= 0.5


def test_bounds_are_of_each_group_and_seed() -> None:
    rule = Exploration(BOUNDED, [0, 1])
    score = torch.tensor([[0.0, 0.3, 0.49, 0.5, 1.0]])
    # Before any label everybody below the threshold may be accepted.
    raised = explored(Exploration(BOUNDED, [0]), score, torch.ones(1, 5))
    torch.testing.assert_close(raised, torch.tensor([[0.25, 0.25, 0.25, 1.0, 1.0]]))
    grid = torch.arange(100.0).repeat(2) / 100
    s = torch.cat([torch.ones(100), -torch.ones(100)])
    # F₀ of S = +1 is uniform on [0, 0.8], that of S = −1 on [0, 0.5); nobody of seed 1 has label 0.
    score = torch.where(s > 0, 0.8 * grid, grid / 2)
    rule.observe(scored(score.expand(2, -1), s.expand(2, -1), torch.stack([0 * s, torch.ones_like(s)])))
    seen = torch.tensor([[0.28, 0.32, 0.05, 0.49, 0.51]]).expand(2, -1)
    advantaged, disadvantaged = (explored(rule, seen, group * torch.ones(2, 5)) for group in (1, -1))
    # The shares below 0.5 and 0.3 are 0.625 and 0.375.
    torch.testing.assert_close(advantaged[0], torch.tensor([0.0, 0.25, 0.0, 0.25, 1.0]))
    # All of F₀ is below the threshold: no bound but its least score, 0.
    torch.testing.assert_close(disadvantaged[0], torch.tensor([0.25, 0.25, 0.25, 0.25, 1.0]))
    for group in (advantaged, disadvantaged):
        torch.testing.assert_close(group[1], torch.tensor([0.25, 0.25, 0.25, 0.25, 1.0]))


def test_epsilon_raises_all_and_decays_by_the_root_of_the_time_step() -> None:
    score = torch.tensor([[0.1, 0.5]])
    s = torch.ones(1, 2)
    rule = Exploration(replace(EPSILON, decay=True), [0])
    for step in (1, 4, 25):
        raised = explored(rule, score, s, steps_done=step - 1)
        torch.testing.assert_close(raised, torch.tensor([[0.25 / step**0.5, 1.0]]))
    constant = Exploration(EPSILON, [0])
    assert explored(constant, score, s, steps_done=24)[0].tolist() == [0.25, 1.0]
    by_chance = torch.tensor([[0.0, 0.4, 1.0]])
    raised = constant.explored(Scores(), torch.zeros(1, 3, 1), torch.ones(1, 3), by_chance, Taken(1))
    torch.testing.assert_close(raised, torch.tensor([[0.25, 0.55, 1.0]]))


@pytest.mark.whole
@pytest.mark.parametrize("config", [BOUNDED, EPSILON], ids=["bounded", "epsilon"])
def test_what_becomes_known_and_that_weights_of_the_recorded_propensities_are_unbiased(
    config: ExplorationConfig,
) -> None:
    """People of uniform score, whose label is 1 with a probability of that score."""
    rule = Exploration(config, [0, 1])
    streams = SeedStreams([0, 1], "people and decisions")
    total, explorable, known_below = torch.zeros(3, 2)
    least = []
    bounded = config.rule is ExplorationRule.bounded
    for step in range(150):
        score, group, luck, decision = streams.uniform(4, 200).unbind(1)
        s = 2.0 * (group < 0.5).float() - 1.0
        label = (luck < score).float()
        propensity = explored(rule, score, s, step)
        accepted = decision < propensity
        rule.observe(scored(score, s, label * accepted, propensity=propensity, accepted=accepted))
        assert not (accepted & (propensity == 0)).any()
        assert (propensity[score >= THRESHOLD] == 1).all()
        if step < 20:  # until bounds rest on many labels
            continue
        between = (score >= (0.25 if bounded else 0.0)) & (score < THRESHOLD)
        assert (propensity[between] == 0.25).all()
        total += torch.where(accepted & between, label / propensity, 0.0).sum(-1)
        explorable += (between * label).sum(-1)
        known_below += (accepted & between).sum(-1)
        least.append(score[propensity == 0.25].min().item())
    if bounded:
        # F₀(v) = 1 − (1 − v)², so the bound is 1 − √¾ = 0.134, at the last steps as at the first.
        for part in (least[:40], least[-40:]):
            assert sum(part) / 40 == pytest.approx(0.13, abs=0.03)
    assert (known_below > 500).all()
    torch.testing.assert_close(total / explorable, torch.ones(2), atol=0.12, rtol=0)


def test_exploring_changes_no_state() -> None:
    rule = Exploration(BOUNDED, [0])
    score = torch.rand(1, 40)
    s = torch.ones(1, 40)
    rule.observe(scored(score, s, 0 * s))
    before = rule.state_dict()
    assert torch.equal(explored(rule, score, s), explored(rule, score, s))
    torch.testing.assert_close(before, rule.state_dict(), rtol=0, atol=0)


KEPT = "evaluation.decisions=true", "exploration.propensity=0.25"


def test_bounded_exploration_goes_on_from_a_saved_state() -> None:
    words = "model=greedy", "exploration=bounded", "model.updates=3", "model.clf_arch=[8]"
    undisturbed, resumed = (training_of(*words, *KEPT)._online for _ in range(2))
    assert_resumed_alike(undisturbed, resumed, 4, 9)
    assert {0.0, 0.25, 1.0} == set(undisturbed.history.propensity[2:].unique().tolist())


def test_a_method_of_deterministic_decisions_explores() -> None:
    words = "model=fairlog", "exploration=epsilon", "model.decision=deterministic", "exploration.decay=false"
    own = training_of(*words, *KEPT)._online
    history = run_online(own, 6)
    propensity = history.propensity
    accepted = history.accepted
    assert set(propensity.unique().tolist()) == {0.25, 1.0}
    assert accepted[propensity == 1].all()
    assert accepted[propensity < 1].float().mean().item() == pytest.approx(0.25, abs=0.08)
    # What is measured is the policy, without exploration.
    people = own.evaluation.stacked
    policy = own.process.learner.propensity(people.x, people.s, SeedStreams([0, 1], "p"))
    torch.testing.assert_close(history.measures["acceptance"][-1], policy.mean(-1))


@pytest.mark.parametrize("rate", ["0", "1.5"])
def test_impossible_rates_are_refused(rate: str, compose_config: ComposeConfig) -> None:
    with pytest.raises(
        FairAllError, match=r"^exploration\.propensity=.* is not possible: it must be above 0"
    ):
        check_values(compose_config("exploration=bounded", f"exploration.propensity={rate}"))
