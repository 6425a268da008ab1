"""What several methods of other papers share, and small learners for the tests of each."""

from typing import Any

import pytest
import torch

from fairall.runtime.randomness import SeedStreams
from tests.conftest import MakePeople, warm_up
from tests.models.conftest import BAD, MISJUDGED, built, decided_on, online_step, regional, warmed


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
    crowd, luck, history = SeedStreams(seeds, "crowd"), SeedStreams(seeds, "luck"), []
    for _ in range(steps):
        people, region = regional(crowd, 48)
        decided, policy = online_step(learner, people, luck.uniform(48))
        history.append(torch.stack([policy, decided.accepted, region]))
    policy, accepts, region = torch.stack(history, 1)
    misjudged, bad = region == MISJUDGED, region == BAD

    def rejected(steps: slice) -> float:
        return (policy[steps][misjudged[steps]] == 0).float().mean().item()

    assert rejected(slice(3)) >= early
    if model == "greedy":
        assert rejected(slice(None)) > 0.95
        return
    assert rejected(slice(-5, None)) < 0.05
    assert policy[-5:][bad[-5:]].mean() < 0.05
    assert ((accepts * (policy == 0) * misjudged).sum((0, 2)) > 3).all()
    if model == "plot":
        assert 0.0 < accepts[bad].mean() < 0.05, "some were candidates whom the clone accepted"


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
    first, second = (decided_on(people(n), 2) for n in (30, 20))
    warm_up(learner, first)
    learner.update(second)
    known = torch.cat([first.accepted & (not forgets), second.accepted], 1)
    assert torch.equal(learner.memory.counts, (known | everybody).sum(-1))
