"""What several methods of other papers share, and small learners for the tests of each."""

import copy
from typing import Any

import pytest
import torch

from fairall.config.choices import choices
from fairall.data.people import Decided
from fairall.models.learner import DecisionRule
from fairall.online.process import Process
from fairall.runtime.randomness import SeedStreams
from tests.conftest import MakePeople, warm_up
from tests.models.conftest import BAD, MISJUDGED, built, decided_on, regional, taught, typed_config, warmed


@pytest.mark.whole
@pytest.mark.parametrize(
    ("model", "steps", "changes"),
    [
        ("greedy exploration.rule=none", 25, {}),
        ("greedy exploration.rule=epsilon", 40, {}),
        ("greedy exploration.rule=bounded", 40, {}),
        ("plot", 25, {}),
        # Of 8 units those of a region may all be dead.
        ("neural_ucb", 25, {"clf_arch": [40], "learning_rate": 0.01}),
        ("explore_exploit exploration.rule=none", 60, {"fdr": 0.4}),
    ],
)
def test_false_rejections_last_with_greedy_and_vanish_with_exploration(
    model: str, steps: int, changes: dict[str, Any]
) -> None:
    name, *rule = model.split()
    seeds, words = [0, 1, 2, 3], ("cost.value=0.5", "exploration.propensity=0.2", *rule)
    learner = warmed(built(name, seeds, *words, **changes))
    process = Process(learner, typed_config("preset=quick", f"model={name}", *words).exploration)
    crowd, history = SeedStreams(seeds, "crowd"), []
    for _ in range(steps):
        people, region = regional(crowd, 48)
        policy, decisions = learner.propensity(people.x, people.s, learner.streams), process.decide(people)
        process.learn([Decided.reveal(people, decisions.propensity, decisions.accepted)])
        history.append(torch.stack([policy, decisions.accepted, region]))
    policy, accepts, region = torch.stack(history, 1)
    misjudged, bad = region == MISJUDGED, region == BAD

    def rejected(steps: slice) -> float:
        return (policy[steps][misjudged[steps]] == 0).float().mean().item()

    assert rejected(slice(2)) >= 0.5
    if model == "greedy exploration.rule=none":
        assert rejected(slice(None)) > 0.95
        return
    assert rejected(slice(-5, None)) < 0.05
    assert policy[-5:][bad[-5:]].mean() < 0.05
    assert ((accepts * (policy == 0) * misjudged).sum((0, 2)) > 3).all()


def test_the_least_score_accepted_is_the_cost_or_one_half_of_what_a_cost_sensitive_loss_moves() -> None:
    drawn = (
        "consequential fair_reductions sellf_one_step fairall_II fairall_I_II fairlab_I_II fairlog unfairlog"
    )
    fixed = "accept_all reject_all random opt_fair oracle oracle_fair explore_exploit"
    for name in choices()["model"].keys() - fixed.split():
        of = DecisionRule() if name in drawn.split() else DecisionRule(0.3, drawn=False)
        assert built(name, [0], "cost.value=0.3").rule == of, name
    for name, words, least in (
        ("fairlog", [], 0.5),
        ("fairall_II", [], 0.5),
        ("fairall_II", ["model.policy=dec"], 0.3),
    ):
        own = built(name, [0], "cost.value=0.3", *words, decision="deterministic")
        assert own.rule == DecisionRule(least, drawn=False)


@pytest.mark.parametrize(
    ("model", "anew"),
    [
        *((name, True) for name in "greedy epsilon_greedy plot adopt neural_ucb fairlog fairall_II".split()),
        ("explore_exploit", False),
    ],
)
def test_adam_starts_anew_at_time_steps_of_plots_authors_and_after_the_warm_up(
    model: str, anew: bool, people: MakePeople
) -> None:
    def steps(learner: Any, *some: range) -> str:
        for one in some:
            before = copy.deepcopy([*learner.parameters()])
            taught(learner, people(20), one)
            changed = {not torch.equal(*pair) for pair in zip(before, learner.parameters(), strict=True)}
            assert changed == ({True} if anew else {True, False}), "of past classifiers"
        parts = learner.training_state()["parts"]
        states = [parts["optimiser"]] if "optimiser" in parts else parts["epochs"].values()
        return str([of["steps"] for of in states])

    learner, fresh = (built(model, [0, 1], "schedule.warm_up_epochs=2", features="abcde") for _ in range(2))
    assert (steps(learner, range(1), range(1, 2)) == steps(fresh, range(1, 2))) == anew


@pytest.mark.parametrize(
    ("model", "changes", "everybody", "forgets"),
    [
        ("consequential", {"data": "recent"}, False, True),
        ("consequential", {"data": "all"}, False, False),
        ("greedy", {}, False, False),
        ("dcem", {}, True, False),
        ("multiple_imputation", {}, True, False),
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
