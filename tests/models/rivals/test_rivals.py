"""What several methods of other papers share, and small learners for the tests of each."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from fairall.config.compose import typed_config
from fairall.data.features import Feature, Kind, Schema
from fairall.data.people import Decided, People
from fairall.models.learner import Setting
from fairall.runtime.randomness import SeedStreams
from tests.conftest import MakePeople, warm_up
from tests.models.conftest import BAD, MISJUDGED, decided_on, online_step, regional, same, warmed

SMALL: dict[str, Any] = {
    "clf_arch": [8],
    "policy_arch": [8],
    "generator_arch": [8, 6],
    "head_arch": [5],
    "discriminator_arch": [4],
    "updates": 20,
    "clone_updates": 40,
    "batch_size": 32,
    "learning_rate": 0.02,
}


def built(
    model: str, seeds: Sequence[int], *words: str, features: Sequence[str] = "ab", **changes: Any
) -> Any:
    """A small learner for people with real features, of the method of a configuration file."""
    config = typed_config("preset=quick", f"model={model}", *words)
    small = {key: value for key, value in SMALL.items() if hasattr(config.model, key)}
    schema = Schema([Feature(name, Kind.REAL) for name in features])
    setting = Setting(schema, config.cost.value, list(seeds), config.schedule, config.protocol)
    return replace(config.model, **{**small, **changes}).build(setting)


def applicants_of(learner: Any, n: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """x, s and region of people, and the propensities of the policy."""
    people, region = regional(SeedStreams(learner.setting.seeds, "crowd"), n)
    return people.x, people.s, region, learner.propensity(people.x, people.s, learner.streams)


@pytest.mark.parametrize("model", ["plot", "adopt", "neural_ucb", "explore_exploit"])
def test_exploration_adds_people_and_changes_nothing(model: str) -> None:
    learner = warmed(built(model, [0, 1, 2], "cost.value=0.5"))
    x, s, _, policy = applicants_of(learner, 60)
    uniform, before = SeedStreams([0, 1, 2], "luck").uniform(60), copy.deepcopy(learner.training_state())
    explored = learner.explore(x, s, policy, uniform)
    assert same(before, learner.training_state())
    assert torch.equal(explored, learner.explore(x, s, policy, uniform))
    assert torch.equal(explored, learner.explore(x, s, policy, 1.0 - uniform)) == (model != "plot")
    assert ((explored >= policy) & (explored <= 1.0)).all()
    assert (explored > policy).any()


@pytest.mark.whole
@pytest.mark.parametrize(
    ("model", "steps", "early", "changes"),
    [
        ("greedy", 25, 1.0, {}),
        ("plot", 25, 0.5, {}),
        # Of 8 units those of a region may all be dead.
        ("neural_ucb", 25, 0.5, {"clf_arch": [40], "learning_rate": 0.01}),
        ("explore_exploit", 60, 1.0, {"fdr": 0.4}),
    ],
)
def test_false_rejections_last_with_greedy_and_vanish_with_exploration(
    model: str, steps: int, early: float, changes: dict[str, Any]
) -> None:
    seeds = [0, 1, 2, 3]
    learner = warmed(built(model, seeds, "cost.value=0.5", **changes))
    crowd, luck = SeedStreams(seeds, "crowd"), SeedStreams(seeds, "luck")
    history = []
    for _ in range(steps):
        people, region = regional(crowd, 48)
        decided, policy = online_step(learner, people, luck.uniform(48))
        history.append((policy, decided.accepted, region))
    policy, accepts, region = map(torch.stack, zip(*history, strict=True))
    misjudged, bad = region == MISJUDGED, region == BAD

    def rejected(steps: slice) -> float:
        return (policy[steps][misjudged[steps]] == 0).float().mean().item()

    assert rejected(slice(3)) >= early
    if model == "greedy":
        assert rejected(slice(None)) > 0.95
        return
    assert rejected(slice(-5, None)) < 0.05
    assert policy[-5:][bad[-5:]].mean() < 0.05
    assert ((accepts & (policy == 0) & misjudged).sum((0, 2)) > 3).all()
    if model == "plot":
        assert 0.0 < accepts[bad].float().mean() < 0.05, "some were candidates whom the clone accepted"


@pytest.mark.parametrize("sees_s", [True, False])
@pytest.mark.parametrize("model", ["consequential", "dcem"])
def test_s_is_a_feature_if_asked_for(model: str, sees_s: bool) -> None:
    learner = warmed(built(model, [0, 1], protected_as_feature=sees_s))
    x, s, _, _ = applicants_of(learner, 60)
    scores = (learner.score(x, sign * s, learner.streams) for sign in (1, -1))
    assert torch.equal(*scores) != sees_s
    if model == "dcem":
        assert not torch.equal(learner.selection.logit(x, s), learner.selection.logit(x, -s))


@pytest.mark.parametrize(
    ("model", "changes", "everybody", "forgets"),
    [
        ("consequential", {"data": "recent"}, False, True),
        ("consequential", {"data": "all"}, False, False),
        ("greedy", {}, False, False),
        ("dcem", {}, True, False),
        ("sellf_one_step", {}, True, False),
    ],
)
def test_people_who_are_remembered(
    model: str, changes: dict[str, Any], everybody: bool, forgets: bool, people: MakePeople
) -> None:
    learner = built(model, [0, 1], features="abcde", **changes)
    steps = [decided_on(people(n), 2) for n in (30, 20)]
    warm_up(learner, steps[0])
    learner.update(steps[1])
    known = [everybody | decided.accepted for decided in steps[forgets:]]
    assert torch.equal(learner.memory.counts, torch.cat(known, dim=1).sum(-1))


TRAINING: dict[str, dict[str, Any]] = {
    "consequential": {"clf_arch": [], "updates": 125},
    "sellf_one_step": {
        "policy_learning_rate": 0.01,
        "policy_updates": 50,
        "updates": 30,
        "past_policies": 1,
        "beta_2": 0.0,
    },
}


@pytest.mark.whole
@pytest.mark.parametrize(
    ("model", "fairness", "multiplier", "large"),
    [
        ("consequential", "demographic_parity", "lambda_", 50.0),
        ("consequential", "equal_opportunity", "lambda_", 50.0),
        ("sellf_one_step", "tpr", "beta_1", 10.0),
        ("sellf_one_step", "accuracy", "beta_1", 10.0),
    ],
)
def test_a_large_multiplier_closes_the_gap_that_it_penalises(
    model: str, fairness: str, multiplier: str, large: float
) -> None:
    streams = SeedStreams([0, 1], "unequal")

    def drawn(n: int) -> tuple[Decided, Tensor]:
        """People of unequal groups, half of them accepted, and the labels of all."""
        group, luck, decision = streams.uniform(3, n).unbind(1)
        talent, noise = streams.normal(2, n).unbind(1)
        s = torch.where(group < 0.5, 1.0, -1.0)
        worth = talent + 0.7 * s
        x = torch.where(s > 0, worth, 0.1 * worth + 2 * luck - 1)  # tells less of S = −1
        people = People(x.unsqueeze(-1), s, (worth + 0.5 * noise > 0).float())
        return Decided.reveal(people, torch.full_like(s, 0.5), decision < 0.5), people.label

    def gap(value: float) -> Tensor:
        changes = {**TRAINING[model], multiplier: value, "fairness": fairness, "batch_size": 500}
        learner = built(model, [0, 1], features="a", learning_rate=0.01, **changes)
        for _ in range(8):
            learner.update(drawn(1000)[0])
        people, y = drawn(10_000)
        pi = learner.propensity(people.x, people.s, streams)
        right, of = {
            "demographic_parity": (pi, 1.0),
            "equal_opportunity": (pi * y, 1.0),
            "tpr": (pi * y, y),
            "accuracy": (pi * y + (1 - pi) * (1 - y), 1.0),
        }[fairness]
        rates = [(own * right).sum(-1) / (own * of).sum(-1) for own in (people.s > 0, people.s < 0)]
        return (rates[0] - rates[1]).abs()

    assert (gap(0.0) > (0.1 if fairness == "accuracy" else 0.4)).all()
    assert (gap(large) < 0.05).all()
