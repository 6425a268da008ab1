"""People who come back: what is learnt from them, and how they are decided on."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from fairall.config.schema import FairnessConfig, FairnessRule
from fairall.data.people import Decided
from fairall.models import mixture
from fairall.models.fairness import FairThresholds
from fairall.runtime.randomness import SeedStreams
from tests.models.conftest import built, rates_of, swayed

STREAMS = SeedStreams([0, 1], "any")
pytestmark = pytest.mark.usefixtures("few_trees")


def everybody(decided: Decided) -> Decided:
    """The same people, all accepted and with a label of their own that x and s foretell."""
    p = (decided.x[..., 0] + 0.5 * decided.s).sigmoid()
    label = (torch.rand(p.shape, generator=torch.Generator().manual_seed(0)) < p).float()
    return replace(decided, accepted=torch.ones_like(decided.accepted), label=label)


def taught(learner: Any, population: Decided, steps: int = 12, fresh: bool = False) -> Any:
    """The learner after steps on people who come back, each with one label, or a `fresh` one each time."""
    for step in range(steps):
        rows = torch.randint(population.s.shape[1], (2, 100), generator=torch.Generator().manual_seed(step))
        one = population.rows(rows)
        learner.update(replace(one, label=everybody(swayed(100, step)).label) if fresh else one)
    return learner


def accepted(learner: Any, people: Decided) -> Tensor:
    """Acceptance probabilities of people as applicants."""
    policy = learner.propensity(people.x, people.s, STREAMS)
    found: Tensor = learner.explore(people.x, people.s, policy, torch.full_like(policy, 0.5))
    return found


@pytest.mark.parametrize("fresh", [False, True])
def test_a_person_who_comes_back_is_decided_on_by_own_labels_where_these_agree(fresh: bool) -> None:
    population, new = everybody(swayed(200, 0)), everybody(swayed(200, 1))
    learner = taught(built("stacked", [0, 1]), population, fresh=fresh)
    assert (learner.worth >= 2.0).all() if fresh else (learner.worth == 0.02).all()
    policy, of_new = (learner.propensity(of.x, of.s, STREAMS) for of in (population, new))
    as_new = learner.of_known(population.x, population.s)[0]
    assert torch.equal(as_new, learner.log_odds(population.x, population.s, STREAMS)) == fresh
    expected, least = (policy, 0.8) if fresh else (population.label, 0.95)
    assert (accepted(learner, population) == expected).float().mean() > least
    assert torch.equal(accepted(learner, new), of_new) or fresh  # people who are alike and others


def test_n_labels_of_a_person_weigh_as_much_as_they_say() -> None:
    once, learners = everybody(swayed(100, 0)), [built("stacked", [0, 1]) for _ in range(2)]
    n = 1 + torch.arange(100).expand(2, -1) % 4
    often = once.rows(torch.arange(100).repeat_interleave(n[0]).expand(2, -1))
    for learner in learners:
        learner.own_evidence[:, 3] = 1.0  # a = .3
    learners[0].update(often)
    learners[1].update(replace(once, weight=n / (1.0 + (n - 1.0) / 1.3)))
    new = swayed(50, 2)
    torch.testing.assert_close(*(one.of_classifiers(new.x, new.s) for one in learners))


def test_estimates_of_known_people_are_of_classifiers_fitted_to_others() -> None:
    people = everybody(swayed(400, 0))
    people = replace(
        people, label=(torch.rand(2, 400, generator=torch.Generator().manual_seed(1)) < 0.5).float()
    )
    learner = built("stacked", [0, 1])
    learner.update(people)
    own, fitted = learner.of_known(people.x, people.s)[0], learner.log_odds(people.x, people.s, STREAMS)
    for e in range(2):
        told = [roc_auc_score(people.label[e], odds[e]) for odds in (own, fitted)]
        assert told[0] < 0.58 < 0.65 < told[1]


@pytest.mark.parametrize(("few", "n_back", "others"), [(200, 2, False), (200, 3, True), (201, 0, True)])
def test_classifiers_are_fitted_to_others_where_people_are_few_or_more_than_one_in_a_hundred_came_back(
    few: int, n_back: int, others: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mixture, "FEW", few)
    rows = (torch.arange(200 + n_back) % 200).expand(2, -1)
    people, learner = everybody(swayed(200, 0)).rows(rows), built("stacked", [0, 1])
    learner.update(people)
    own = learner.of_known(people.x, people.s)[0]
    assert torch.equal(own, learner.log_odds(people.x, people.s, STREAMS)) != others


def test_labels_of_weight_0_and_of_the_forgotten_are_no_labels_and_who_has_0_of_everything_is_known() -> None:
    people, learner = everybody(swayed(200, 0)), built("stacked", [0, 1])
    people.x[:, 50], people.s[:, 50] = 0.0, 0.0
    weight = (torch.arange(200) < 120).float().expand(2, -1)
    learner.update(replace(people, weight=weight))
    learner.memory.columns["accepted"][:, :20] = False
    learner.update(everybody(swayed(50, 1)))
    known = learner.of_known(people.x, people.s)[2]
    assert torch.equal(known, (weight > 0) & (torch.arange(200) >= 20))


@pytest.mark.parametrize("rule", [FairnessRule.demographic_parity, FairnessRule.equal_opportunity])
def test_new_and_known_people_have_equal_rates_each(rule: FairnessRule) -> None:
    fairness = FairnessConfig(rule=rule, slack=0.0, blind=False, window=4096)
    learner = FairThresholds(fairness, built("stacked", [0, 1]))
    population = everybody(swayed(800, 0))
    inner: Any = taught(learner, population, steps=16).learner
    assert (inner.worth == 0.02).all()
    seen, new = learner.seen.rows(), everybody(swayed(4000, 77))
    # A rate of 320 people has a standard error of 3 points.
    for people, limit in ((seen, 0.01), (new, 0.1)):
        pi = accepted(learner, people)
        counts = people.label if rule is FairnessRule.equal_opportunity else torch.ones_like(pi)
        for of in zip(counts, people.s, pi, strict=True):
            counted, s, own = (one.numpy() for one in of)
            assert np.ptp(rates_of(counted, s) @ own) < limit
    right = [(accepted(learner, people) == people.label).float().mean() for people in (seen, new)]
    assert right[0] > 0.9 > 0.8 > right[1]
