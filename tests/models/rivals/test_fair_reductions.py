from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import linprog

from fairall.data.people import Decided, People
from fairall.models.rivals.fair_reductions import (
    FAIRNESS,
    FairReductions,
    FairReductionsConfig,
    Found,
    Problem,
    best_mixture,
    distribution,
    exponentiated_gradient,
    largest_deviation,
)
from fairall.runtime.randomness import SeedStreams
from tests.conftest import ComposeConfig, MakePeople, MakeSetting, warm_up
from tests.models.conftest import decided_on
from tests.models.rivals.test_consequential import COST, NUMBER, QUALIFIED, S, X, as_expected, one_feature

SHORT = "schedule.time_steps=8", "schedule.applicants=64"  # T = 512: 64 people are accepted with α = 1/3


@pytest.fixture
def config(compose_config: ComposeConfig) -> FairReductionsConfig:
    model: FairReductionsConfig = compose_config("model=fair_reductions").model
    return replace(model, alpha=1 / 3, iterations=20, rounds=6)


def everybody(people: People, n_seeds: int) -> Decided:
    rows = people.rows(torch.arange(len(people)).expand(n_seeds, -1))
    return Decided.reveal(rows, torch.ones_like(rows.s), torch.ones_like(rows.s, dtype=torch.bool))


def accepted(problem: Problem, found: Found) -> torch.Tensor:
    return found.accepted(problem.columns)


def population(n_seeds: int, *, n: int = 600) -> Problem:
    """People with standard normal x, more of it with s, all accepted, of cost 1/2; a third is measured."""
    streams = SeedStreams(range(n_seeds), "population")
    group, noise, luck = streams.uniform(n), streams.normal(n), streams.uniform(n)
    s = torch.where(group < 0.6, 1.0, -1.0)
    x = noise + 0.7 * s
    label = (luck < torch.sigmoid(2.0 * x)).float()
    columns = torch.stack([x, s, torch.ones_like(x)], dim=-1)
    first = (torch.arange(n) < n / 3).float().expand(n_seeds, -1)
    return Problem(columns, (0.5 - label) / n, largest_deviation(first, s), slack=0.05)


def test_losses_of_policies_are_their_mean_losses_whoever_decided(
    config: FairReductionsConfig, setting: MakeSetting
) -> None:
    learner = FairReductions(config, one_feature(setting([0])))
    learner.remember(as_expected(), first=True)
    problem, share = learner.problem(), NUMBER / NUMBER.sum()
    x, s = problem.columns[..., 0], problem.columns[..., 1]
    for pi in torch.rand(5, 6):
        own = sum(pi[k] * ((x == X[k]) & (s == S[k])) for k in range(6))
        expected = (share * pi * (COST - QUALIFIED)).sum()
        assert (own * problem.loss).sum().item() == pytest.approx(expected.item(), abs=1e-5)


@pytest.mark.parametrize("fairness", FAIRNESS)
def test_the_constraint_is_the_largest_deviation_of_a_rate(
    fairness: str, config: FairReductionsConfig, setting: MakeSetting, people: MakePeople
) -> None:
    learner = FairReductions(replace(config, fairness=fairness), setting([0, 1]))
    first = everybody(people(80), 2)
    learner.remember(decided_on(people(30), 2), first=False)
    learner.remember(first, first=True)
    problem = learner.problem()
    pi = torch.rand(2, 110)
    counted = first.label == 1 if fairness == "equal_opportunity" else torch.ones_like(first.accepted)
    for k in range(2):
        rates = [pi[k, 30:][counted[k] & own].mean() for own in (first.s[k] > 0, first.s[k] < 0)]
        deviations = torch.stack(rates) - pi[k, 30:][counted[k]].mean()
        measured = (pi[k] * problem.gap[k]).sum()
        assert measured.abs().item() == pytest.approx(deviations.abs().max().item(), abs=1e-5)
        assert (measured > 0) == (rates[0] > rates[1])


def test_the_cheapest_mixture_is_that_of_a_linear_programme() -> None:
    generator = np.random.default_rng(0)
    cost, gap = generator.normal(size=(2, 30, 7))
    gap[:, 0] = 0.0
    for slack in (0.0, 0.1, 0.5):
        pair, share = best_mixture(torch.tensor(cost), torch.tensor(gap), slack)
        for k in range(30):
            rows = np.stack([gap[k], -gap[k]])
            best = linprog(cost[k], A_ub=rows, b_ub=[slack, slack], A_eq=np.ones((1, 7)), b_eq=[1.0])
            mixed = share[k].numpy()
            assert mixed @ cost[k, pair[k]] == pytest.approx(best.fun, abs=1e-9)
            assert abs(mixed @ gap[k, pair[k]]) <= slack + 1e-9
            assert mixed.sum() == pytest.approx(1.0)
            assert mixed.min() >= 0


@pytest.mark.parametrize("slack", [0.02, 0.1, 1.0])
def test_the_oracle_finds_the_best_fair_policy_of_few_kinds_of_people(slack: float) -> None:
    # x in {0, 1, 2}: p(ỹ = 1) = 0.2, 0.6, 0.9 for both groups, who have different shares of each.
    worth, shares = torch.tensor([0.2, 0.6, 0.9] * 2), torch.tensor([1, 3, 6, 5, 3, 2]) / 20
    s = torch.tensor([1.0] * 3 + [-1.0] * 3)
    columns = torch.stack([torch.tensor([0.0, 1.0, 2.0] * 2), s, torch.ones(6)], dim=-1).unsqueeze(0)
    problem = Problem(
        columns, (shares * (0.5 - worth)).unsqueeze(0), largest_deviation(shares.unsqueeze(0), s), slack
    )
    accepts = accepted(problem, exponentiated_gradient(problem, problem.loss, 50))
    gaps = problem.gap[0].double().numpy()
    best = linprog(problem.loss[0].numpy(), A_ub=[gaps, -gaps], b_ub=[slack] * 2, bounds=(0, 1))
    assert (accepts * problem.loss).sum().item() == pytest.approx(best.fun, abs=3e-3)
    assert (accepts * problem.gap).sum().abs() <= slack + 1e-5


@pytest.mark.whole
def test_the_oracle_is_as_good_as_fairlearn() -> None:
    reductions = pytest.importorskip("fairlearn.reductions")
    from sklearn.linear_model import LogisticRegression

    problem = replace(population(1), gap=largest_deviation(torch.ones(1, 600), population(1).columns[..., 1]))
    x, label = problem.columns[0].numpy(), (problem.loss[0] < 0).int().numpy()
    constraint = reductions.DemographicParity(difference_bound=problem.slack)
    other = reductions.ExponentiatedGradient(LogisticRegression(), constraint, max_iter=50)
    other.fit(x, label, sensitive_features=x[:, 1])
    mixed = zip(other.weights_, other.predictors_, strict=True)
    theirs = torch.tensor(sum(weight * one.predict(x) for weight, one in mixed)).float()
    ours = accepted(problem, exponentiated_gradient(problem, problem.loss, 50))[0]
    assert (ours * problem.loss).sum() <= (theirs * problem.loss).sum() + 0.005
    assert (ours * problem.gap).sum().abs() <= problem.slack + 1e-5
    # Without the constraint the gap would be far from it.
    free = accepted(problem, exponentiated_gradient(replace(problem, slack=1.0), problem.loss, 50))[0]
    assert (free * problem.gap).sum() > 3 * problem.slack


@pytest.mark.whole
def test_the_distribution_explores_every_policy_and_its_regret_is_bounded() -> None:
    problem, mu, psi = population(3), 0.1, 20.0
    best = accepted(problem, exponentiated_gradient(problem, problem.loss, 30))
    least = (best * problem.loss).sum(-1)
    found = distribution(problem, iterations=30, rounds=8, mu=mu, psi=psi)
    torch.testing.assert_close(found.probability.sum(-1), torch.ones(3))
    assert (found.probability > -1e-6).all()
    pi = accepted(problem, found)
    assert ((pi * problem.gap).sum(-1).abs() <= problem.slack + 1e-5).all()
    yes, no = (1 - 2 * mu) * pi + mu, (1 - 2 * mu) * (1 - pi) + mu
    thresholds = [(problem.columns[..., 0] > t).float() for t in (-1.0, 0.0, 1.0)]
    for policy in (best, 0.0 * pi, 0.0 * pi + 1.0, 0.5 * sum(thresholds[:2]), *thresholds):
        fair = (policy * problem.gap).sum(-1).abs() <= problem.slack
        variance = (policy / yes + (1 - policy) / no).mean(-1)
        b = ((policy * problem.loss).sum(-1) - least).clamp(min=0) / (psi * mu)
        assert ((variance <= 4 + b + 0.2) | ~fair).all()
    # The best policy alone would leave its contrary 1/μ.
    assert (pi.min(-1).values > 0.05).all()
    assert (pi.max(-1).values < 0.95).all()
    # Greater ψμ discounts regret less, and the distribution earns more where regret counts.
    mixtures = [distribution(problem, iterations=30, rounds=8, mu=mu, psi=psi) for psi in (0.2, 200.0)]
    loss = [(accepted(problem, found) * problem.loss).sum(-1) for found in mixtures]
    assert (loss[0] < loss[1]).all()


def test_everybody_is_accepted_until_the_first_are_known_and_then_nobody_surely(
    config: FairReductionsConfig, setting: MakeSetting, people: MakePeople
) -> None:
    learner = FairReductions(replace(config, solve_every=3), setting([0, 1], *SHORT))
    assert learner.first_people == 64
    warm_up(learner, decided_on(people(40), 2))
    x, s = people(90).x.expand(2, -1, -1), people(90).s.expand(2, -1)
    streams, kept, solved = SeedStreams([0, 1], "p"), [], []
    for step in range(9):
        pi = learner.propensity(x, s, streams)
        if step < 2:  # 32 applicants each
            assert (pi == 1).all()
        else:
            mu = learner.smoothing
            assert ((pi >= mu - 1e-6) & (pi <= 1 - mu + 1e-6)).all()
            torch.testing.assert_close(learner.probability.sum(-1), torch.ones(2))
        kept.append(learner.classifiers.clone())
        learner.update(
            everybody(people(32), 2) if step < 2 else decided_on(people(32 + step).rows(torch.arange(32)), 2)
        )
        solved.append(not torch.equal(kept[-1], learner.classifiers))
    # From the end of the phase on: 0, 1, 2, 3, 6.
    assert solved == [False, True, True, True, True, False, False, True, False]
    problem = learner.problem()
    assert (problem.gap != 0).sum(-1).tolist() == [64, 64]
    mu = learner.smoothing
    assert mu == pytest.approx(config.mu * (2 / 4) ** 0.5)
    mixture = (learner.propensity(x, s, streams) - mu) / (1 - 2 * mu)
    assert mixture.min() > -1e-5
    unsmoothed = (problem.columns @ learner.classifiers.mT > 0).float() @ learner.probability.unsqueeze(-1)
    assert ((unsmoothed.squeeze(-1) * problem.gap).sum(-1).abs() <= config.slack + 1e-5).all()


def test_smoothing_decays_with_the_distributions_found(
    config: FairReductionsConfig, setting: MakeSetting, people: MakePeople
) -> None:
    learner = FairReductions(replace(config, mu=0.1, rounds=1), setting([0], *SHORT))
    learner.remember(everybody(people(30), 1), first=True)
    found = []
    for _ in range(6):
        learner.solve()
        found.append(learner.smoothing)
    expected = [0.1, 0.1, 0.1, 0.1 * (2 / 3) ** 0.5, 0.1 * (2 / 4) ** 0.5, 0.1 * (2 / 5) ** 0.5]
    assert found == pytest.approx(expected)
