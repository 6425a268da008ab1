from typing import Any

import numpy as np
import pytest
import torch

from fairall.data.people import Decided, People
from fairall.models.rivals.fair_reductions import (
    FAIRNESS,
    accepted,
    best_mixture,
    largest_deviation,
)
from fairall.runtime.randomness import SeedStreams
from tests.conftest import MakePeople, warm_up
from tests.models.conftest import built, decided_on, most_within, stacked


def learner_of(*words: str, **changes: Any) -> Any:
    """A learner of two seeds."""
    usual = {"alpha": 1 / 3, "iterations": 20, "rounds": 6}
    return built("fair_reductions", [0, 1], *words, features="abcde", **(usual | changes))


def everybody(people: People) -> Decided:
    """Of two seeds, all accepted for sure."""
    x, s = stacked(people)
    return Decided(x, s, torch.ones_like(s), s != 0, people.label.expand_as(s))


@pytest.mark.parametrize("fairness", FAIRNESS)
def test_losses_are_weighted_means_and_the_gap_is_the_largest_deviation_of_a_rate(
    fairness: str, people: MakePeople
) -> None:
    learner, first = learner_of("cost.value=0.4", fairness=fairness), everybody(people(80))
    later = decided_on(people(30), 2)
    learner.remember(later, first=False)
    learner.remember(first, first=True)
    (_, loss, gap), pi = learner.problem(), torch.rand(2, 110)
    weight = torch.cat([later.accepted / later.propensity, first.accepted], dim=1)
    wrong = 0.4 - torch.cat([later.label, first.label], dim=1)
    expected = (weight * pi * wrong).sum(-1) / weight.sum(-1)
    torch.testing.assert_close((pi * loss).sum(-1), expected)
    counted = first.label if fairness == "equal_opportunity" else torch.ones_like(first.label)
    upper, lower, overall = (
        (pi[:, 30:] * counted * of).sum(-1) / (counted * of).sum(-1)
        for of in (first.s > 0, first.s < 0, first.accepted)
    )
    largest = torch.maximum((upper - overall).abs(), (lower - overall).abs())
    torch.testing.assert_close((pi * gap).sum(-1), largest * (upper - lower).sign(), rtol=0, atol=1e-5)


@pytest.mark.parametrize("slack", [0.0, 0.1, 0.5])
def test_the_cheapest_mixture_is_that_of_a_linear_programme(slack: float) -> None:
    cost, gap = np.random.default_rng(0).normal(size=(2, 30, 7))
    gap[:, 0] = 0.0
    pairs = best_mixture(torch.tensor(cost), torch.tensor(gap), slack)
    shares_add_up = (np.ones(7), 1.0), (-np.ones(7), -1.0)
    for own_cost, own_gap, pair, share in zip(cost, gap, *pairs, strict=True):
        most = most_within(-own_cost, np.stack([own_gap, 0 * own_gap]), slack, *shares_add_up)
        assert share @ own_cost[pair] == pytest.approx(-most, abs=1e-7)
        assert abs(share @ own_gap[pair]) <= slack + 1e-9
        assert share.min() >= 0


@pytest.mark.parametrize("slack", [0.02, 0.1, 1.0])
def test_the_oracle_finds_the_best_fair_policy_of_few_kinds_of_people(slack: float) -> None:
    # x in {0, 1, 2} of both groups, who have different shares of each; loss of acceptance ½ − p(ỹ = 1).
    x, loss = torch.tensor([[0.0, 1.0, 2.0], [0.3, -0.1, -0.4]]).repeat(1, 2).unsqueeze(1)
    shares, s = torch.tensor([[1, 3, 6, 5, 3, 2]]) / 20, torch.tensor([[1.0, 1.0, 1.0, -1.0, -1.0, -1.0]])
    columns = torch.stack([x, s, torch.ones_like(s)], dim=-1)
    gap = largest_deviation(shares, s)
    policy = learner_of(slack=slack, iterations=50).cheapest(columns, gap, shares * loss)
    pi = accepted(policy, columns)
    best = most_within(-(shares * loss)[0].numpy(), np.stack([gap[0], 0 * gap[0]]), slack)
    assert -(pi * shares * loss).sum().item() == pytest.approx(best, abs=3e-3)
    assert (pi * gap).sum().abs() <= slack + 1e-5


@pytest.mark.whole
def test_the_distribution_explores_every_policy_and_its_regret_is_bounded() -> None:
    # People with standard normal x, more of it with s; the first 200 measure the gap.
    mu, streams = 0.1, SeedStreams(range(3), "population")
    (group, luck), noise = streams.uniform(2, 600).unbind(1), streams.normal(600)
    s = torch.where(group < 0.6, 1.0, -1.0)
    x = noise + 0.7 * s
    loss = (0.5 - (luck < torch.sigmoid(2.0 * x)).float()) / 600
    gap = largest_deviation((torch.arange(600) < 200).float().expand(3, -1), s)
    columns = torch.stack([x, s, torch.ones_like(x)], dim=-1)
    learner = learner_of(slack=0.05, iterations=30, rounds=8, mu=mu)
    of_best = accepted(learner.cheapest(columns, gap, loss), columns)
    found = []
    for psi in (20.0, 0.2):
        learner.psi = psi
        policy = learner.distribution(columns, loss, gap)
        torch.testing.assert_close(policy[..., -1].abs().sum(-1), torch.ones(3))
        found.append(accepted(policy, columns))
    pi, small = found
    # Greater ψμ discounts regret less, and the distribution earns more where regret counts.
    assert ((small * loss).sum(-1) < (pi * loss).sum(-1)).all()
    assert ((pi * gap).sum(-1).abs() <= 0.05 + 1e-5).all()
    yes, no = (1 - 2 * mu) * pi + mu, (1 - 2 * mu) * (1 - pi) + mu
    for policy in (of_best, (x > 0).float()):
        variance = (policy / yes + (1 - policy) / no).mean(-1)
        regret = ((policy - of_best) * loss).sum(-1).clamp(min=0)
        assert ((variance <= 4 + regret / (20.0 * mu) + 0.2) | ((policy * gap).sum(-1).abs() > 0.05)).all()
    # The best policy alone would leave its contrary 1/μ.
    assert ((pi > 0.05) & (pi < 0.95)).all()


def test_everybody_is_accepted_until_the_first_are_known_and_then_nobody_surely(people: MakePeople) -> None:
    # T = 512, and 64 people are accepted.
    learner = learner_of("schedule.time_steps=8", "schedule.applicants=64", solve_every=3)
    warm_up(learner, decided_on(people(40), 2))
    x, s = stacked(people(90))
    solved, smoothing, streams = [], [], SeedStreams([0, 1], "p")
    for step in range(9):  # with 32 applicants each
        pi, mu = learner.propensity(x, s, streams), learner.smoothing
        assert ((pi >= mu - 1e-6) & (pi <= 1 - mu + 1e-6)).all() if step > 1 else (pi == 1).all()
        before = learner.policy
        learner.update(everybody(people(32)) if step < 2 else decided_on(people(32), 2))
        solved.append(not torch.equal(before, learner.policy))
        smoothing.append(learner.smoothing / learner.config.mu)
    # From the end of the phase on: 0, 1, 2, 3, 6.
    assert solved == [False, True, True, True, True, False, False, True, False]
    # Fewer than two earlier distributions count as two.
    assert smoothing == pytest.approx([1.0] * 4 + [(2 / 3) ** 0.5] * 3 + [(2 / 4) ** 0.5] * 2)
    assert (learner.problem()[2] != 0).sum(-1).tolist() == [64, 64]
    mixture = accepted(learner.policy, learner.columns(x, s))
    mu = learner.smoothing
    expected = (1 - 2 * mu) * mixture + mu
    torch.testing.assert_close(learner.score(x, s, streams), expected, rtol=0, atol=1e-5)
