from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import linprog
from torch import Tensor

from fairall.data.people import Decided, People
from fairall.models.rivals.fair_reductions import (
    FAIRNESS,
    Found,
    Problem,
    best_mixture,
    distribution,
    exponentiated_gradient,
    largest_deviation,
)
from fairall.runtime.randomness import SeedStreams
from tests.conftest import MakePeople, warm_up
from tests.models.conftest import decided_on, stacked
from tests.models.rivals.test_consequential import COST, NUMBER, QUALIFIED, S, X, as_expected
from tests.models.rivals.test_rivals import built

SHORT = "schedule.time_steps=8", "schedule.applicants=64"  # T = 512: 64 people are accepted with α = 1/3


def learner_of(*words: str, features: str = "abcde", **changes: Any) -> Any:
    """A learner of two seeds."""
    usual = {"alpha": 1 / 3, "iterations": 20, "rounds": 6}
    return built("fair_reductions", [0, 1], *words, features=features, **(usual | changes))


def everybody(people: People) -> Decided:
    """Of two seeds, all accepted for sure."""
    decided = decided_on(people, 2, share=1.0)
    return replace(decided, propensity=torch.ones_like(decided.s))


def sums(problem: Problem, found: Found) -> tuple[Tensor, Tensor]:
    """The loss and the gap of a policy, shape (E,)."""
    accepted = found.accepted(problem.columns)
    return (accepted * problem.loss).sum(-1), (accepted * problem.gap).sum(-1)


def population(n_seeds: int, *, measured: float, n: int = 600) -> Problem:
    """People with standard normal x, more of it with s, all accepted, of cost 1/2; some are measured."""
    streams = SeedStreams(range(n_seeds), "population")
    (group, luck), noise = streams.uniform(2, n).unbind(1), streams.normal(n)
    s = torch.where(group < 0.6, 1.0, -1.0)
    x = noise + 0.7 * s
    loss = (0.5 - (luck < torch.sigmoid(2.0 * x)).float()) / n
    first = (torch.arange(n) < measured * n).float().expand(n_seeds, -1)
    return Problem(torch.stack([x, s, torch.ones_like(x)], dim=-1), loss, largest_deviation(first, s), 0.05)


def test_losses_of_policies_are_their_mean_losses_whoever_decided() -> None:
    learner = learner_of(f"cost.value={COST}", features="a")
    learner.remember(as_expected(), first=True)
    problem, share = learner.problem(), NUMBER / NUMBER.sum()
    kind = (problem.columns[0, :, None, :2] == torch.stack([X, S], dim=-1)).all(-1).float()
    pi = torch.rand(6, 5)
    expected = (share * (COST - QUALIFIED)) @ pi
    torch.testing.assert_close((problem.loss @ kind @ pi)[0], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("fairness", FAIRNESS)
def test_the_constraint_is_the_largest_deviation_of_a_rate(fairness: str, people: MakePeople) -> None:
    learner, first = learner_of(fairness=fairness), everybody(people(80))
    learner.remember(decided_on(people(30), 2), first=False)
    learner.remember(first, first=True)
    gap, pi = learner.problem().gap, torch.rand(2, 110)
    assert (gap[:, :30] == 0).all()
    counted = first.label if fairness == "equal_opportunity" else torch.ones_like(first.label)
    upper, lower, overall = (
        (pi[:, 30:] * counted * of).sum(-1) / (counted * of).sum(-1)
        for of in (first.s > 0, first.s < 0, first.accepted)
    )
    largest = torch.maximum((upper - overall).abs(), (lower - overall).abs())
    torch.testing.assert_close((pi * gap).sum(-1), largest * (upper - lower).sign(), rtol=0, atol=1e-5)


def test_the_cheapest_mixture_is_that_of_a_linear_programme() -> None:
    cost, gap = np.random.default_rng(0).normal(size=(2, 30, 7))
    gap[:, 0] = 0.0
    for slack in (0.0, 0.1, 0.5):
        for k, (pair, share) in enumerate(
            zip(*best_mixture(torch.tensor(cost), torch.tensor(gap), slack), strict=True)
        ):
            bounds = {"A_ub": [gap[k], -gap[k]], "b_ub": [slack, slack]}
            best = linprog(cost[k], A_eq=np.ones((1, 7)), b_eq=[1.0], **bounds)
            assert share @ cost[k, pair] == pytest.approx(best.fun, abs=1e-9)
            assert abs(share @ gap[k, pair]) <= slack + 1e-9
            assert share.sum().item() == pytest.approx(1.0)
            assert share.min() >= 0


@pytest.mark.parametrize("slack", [0.02, 0.1, 1.0])
def test_the_oracle_finds_the_best_fair_policy_of_few_kinds_of_people(slack: float) -> None:
    # x in {0, 1, 2}: p(ỹ = 1) = 0.2, 0.6, 0.9 for both groups, who have different shares of each.
    x, worth = torch.tensor([[0.0, 1.0, 2.0], [0.2, 0.6, 0.9]]).repeat(1, 2)
    shares, s = torch.tensor([[1, 3, 6, 5, 3, 2]]) / 20, torch.tensor([[1.0] * 3 + [-1.0] * 3])
    columns = torch.stack([x.unsqueeze(0), s, torch.ones_like(s)], dim=-1)
    problem = Problem(columns, shares * (0.5 - worth), largest_deviation(shares, s), slack)
    loss, gap = sums(problem, exponentiated_gradient(problem, problem.loss, 50))
    gaps = problem.gap[0].double().numpy()
    best = linprog(problem.loss[0].numpy(), A_ub=[gaps, -gaps], b_ub=[slack] * 2, bounds=(0, 1))
    assert loss.item() == pytest.approx(best.fun, abs=3e-3)
    assert gap.abs() <= slack + 1e-5


@pytest.mark.whole
def test_the_oracle_is_as_good_as_fairlearn() -> None:
    reductions = pytest.importorskip("fairlearn.reductions")
    from sklearn.linear_model import LogisticRegression

    problem = population(1, measured=1.0)
    x, label = problem.columns[0].numpy(), (problem.loss[0] < 0).int().numpy()
    constraint = reductions.DemographicParity(difference_bound=problem.slack)
    other = reductions.ExponentiatedGradient(LogisticRegression(), constraint, max_iter=50)
    other.fit(x, label, sensitive_features=x[:, 1])
    mixed = zip(other.weights_, other.predictors_, strict=True)
    theirs = torch.tensor(sum(weight * one.predict(x) for weight, one in mixed)).float()
    loss, gap = sums(problem, exponentiated_gradient(problem, problem.loss, 50))
    assert loss <= (theirs * problem.loss).sum() + 0.005
    assert gap.abs() <= problem.slack + 1e-5
    # Without the constraint the gap would be far from it.
    _, free = sums(problem, exponentiated_gradient(problem._replace(slack=1.0), problem.loss, 50))
    assert free > 3 * problem.slack


@pytest.mark.whole
def test_the_distribution_explores_every_policy_and_its_regret_is_bounded() -> None:
    problem, mu, psi = population(3, measured=1 / 3), 0.1, 20.0
    best = exponentiated_gradient(problem, problem.loss, 30)
    least, _ = sums(problem, best)
    # Greater ψμ discounts regret less, and the distribution earns more where regret counts.
    found, small, large = (
        distribution(problem, iterations=30, rounds=8, mu=mu, psi=psi) for psi in (psi, 0.2, 200.0)
    )
    assert (sums(problem, small)[0] < sums(problem, large)[0]).all()
    torch.testing.assert_close(found.probability.sum(-1), torch.ones(3))
    assert (found.probability > -1e-6).all()
    assert (sums(problem, found)[1].abs() <= problem.slack + 1e-5).all()
    pi = found.accepted(problem.columns)
    yes, no = (1 - 2 * mu) * pi + mu, (1 - 2 * mu) * (1 - pi) + mu
    low, middle, high = ((problem.columns[..., 0] > t).float() for t in (-1.0, 0.0, 1.0))
    certain, of_best = torch.ones_like(pi), best.accepted(problem.columns)
    for policy in (of_best, 0 * certain, certain, 0.5 * (low + middle), low, middle, high):
        fair = (policy * problem.gap).sum(-1).abs() <= problem.slack
        variance = (policy / yes + (1 - policy) / no).mean(-1)
        b = ((policy * problem.loss).sum(-1) - least).clamp(min=0) / (psi * mu)
        assert ((variance <= 4 + b + 0.2) | ~fair).all()
    # The best policy alone would leave its contrary 1/μ.
    assert ((pi > 0.05) & (pi < 0.95)).all()


def test_everybody_is_accepted_until_the_first_are_known_and_then_nobody_surely(people: MakePeople) -> None:
    learner = learner_of(*SHORT, solve_every=3)
    assert learner.first_people == 64
    warm_up(learner, decided_on(people(40), 2))
    x, s = stacked(people(90))
    solved, smoothing = [], []
    for step in range(9):  # with 32 applicants each
        pi, mu = learner.propensity(x, s, SeedStreams([0, 1], "p")), learner.smoothing
        assert ((pi >= mu - 1e-6) & (pi <= 1 - mu + 1e-6)).all() if step > 1 else (pi == 1).all()
        before = learner.classifiers.clone()
        applicants = people(32 + step).rows(torch.arange(32))
        learner.update(everybody(applicants) if step < 2 else decided_on(applicants, 2))
        solved.append(not torch.equal(before, learner.classifiers))
        smoothing.append(learner.smoothing / learner.config.mu)
    # From the end of the phase on: 0, 1, 2, 3, 6.
    assert solved == [False, True, True, True, True, False, False, True, False]
    problem, mu = learner.problem(), learner.smoothing
    assert (problem.gap != 0).sum(-1).tolist() == [64, 64]
    # Fewer than two earlier distributions count as two.
    assert smoothing == pytest.approx([1.0] * 4 + [(2 / 3) ** 0.5] * 3 + [(2 / 4) ** 0.5] * 2)
    found = Found(learner.classifiers, learner.probability)
    torch.testing.assert_close(found.probability.sum(-1), torch.ones(2))
    assert (sums(problem, found)[1].abs() <= problem.slack + 1e-5).all()
    mixture = (learner.score(x, s, SeedStreams([0, 1], "p")) - mu) / (1 - 2 * mu)
    torch.testing.assert_close(mixture, found.accepted(learner.columns(x, s)), rtol=0, atol=1e-5)
