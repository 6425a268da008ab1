"""Phase II: who applies, who is accepted, what the learner sees, and what is recorded of it."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fairall.config.compose import typed_config
from fairall.config.schema import DecisionLuck, ExplorationConfig, ExplorationRule
from fairall.data.load import load_dataset
from fairall.data.people import Decided, Decisions, People
from fairall.data.prepared import PreparedData
from fairall.display.progress import Display
from fairall.errors import FairAllError
from fairall.measuring.summary import measure_table
from fairall.models.fairall import FairAll
from fairall.models.learner import Learner, Setting
from fairall.online.evaluation import Evaluator
from fairall.online.history import History, Records
from fairall.online.initial_policy import LogisticPolicy
from fairall.online.loop import OnlineLearning
from fairall.online.training import Training, initially_decided
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Checkpoint
from fairall.worlds.world import World
from tests.conftest import (
    ComposeConfig,
    Shown,
    assert_resumed_alike,
    no_cache,
    run_online,
)


class By(Shown):
    """Accepts by a function of x, s, streams and the number of updates so far."""

    def __init__(self, of: Callable[[Tensor, Tensor, SeedStreams, int], Tensor]) -> None:
        super().__init__()
        self.of = of

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return self.of(x, s, streams, len(self.seen))


def coin(*of_seeds: float) -> By:
    """Accepts with one probability, or with one of each seed."""
    return By(lambda x, s, *_: torch.tensor(of_seeds).unsqueeze(-1).expand(s.shape))


def rarer() -> By:
    """Accepts half as often after every update."""
    return By(lambda x, s, _, n: torch.full(s.shape, 0.5**n))


def stuck(after: int, propensity: float) -> ExplorationConfig:
    """Exploration of seeds that have accepted nobody for some steps."""
    return ExplorationConfig(ExplorationRule.stuck, propensity=propensity, after=after)


def online(learner: Learner, data: PreparedData, n_seeds: int = 2, **guards: Any) -> OnlineLearning:
    seeds = [*range(n_seeds)]
    luck = guards.get("luck", DecisionLuck.fresh)
    world = World(typed_config(f"protocol.decision_luck={luck.name}"), data, seeds)
    return OnlineLearning(learner, world, Evaluator(data.test, 0.5, seeds), seeds, **guards)


def lived(learner: Learner, data: PreparedData, steps: int, n_seeds: int = 2, **guards: Any) -> History:
    """The history of some time steps."""
    return run_online(online(learner, data, n_seeds, **guards), steps)


@pytest.fixture(scope="module")
def synthetic() -> PreparedData:
    return load_dataset("synthetic").prepare()


@pytest.mark.parametrize(("size", "one_order"), [(70, False), (64, True), (70, True), (1000, True)])
def test_everyone_applies_once_per_pass_in_an_order_of_the_seeds_own(
    size: int, one_order: bool, credit: PreparedData
) -> None:
    stream = credit.applicants(size, [0, 1], one_order=one_order)
    steps = math.ceil(700 / size)
    passes = [torch.cat([stream.next().x for _ in range(steps)], dim=1) for _ in range(3)]
    # In one order a person keeps the position in their time step.
    assert [torch.equal(passes[0], one) for one in passes] == [True, one_order, one_order]
    assert not torch.equal(*passes[0])
    for one in torch.cat(passes):
        assert torch.equal(one[:700].sort(0).values, credit.train.x.sort(0).values)
        assert torch.equal(one[700:], one[: len(one) - 700])  # fill the last step up


def test_fixed_luck_decides_alike_at_every_step_and_again_after_the_update(credit: PreparedData) -> None:
    history = lived(coin(0.5), credit, 4, decide_again=True, luck=DecisionLuck.fixed)
    first = history.accepted[0]
    assert not torch.equal(*first)
    assert 0 < first.float().mean() < 1
    for of in (history.accepted, history.counted):
        assert torch.equal(of, first.expand_as(of))
    fresh = lived(coin(0.5), credit, 30, decide_again=True)
    assert not torch.equal(*fresh.accepted[:2])
    # Deciding again is with luck of its own.
    for share in (fresh.counted, fresh.counted == fresh.accepted):
        assert share.float().mean().item() == pytest.approx(0.5, abs=0.05)


@pytest.mark.whole
def test_fixed_luck_leaves_the_mean_over_seeds_and_widens_their_spread(credit: PreparedData) -> None:
    fixed, fresh = (
        lived(coin(0.3), credit, 16, 200, luck=luck).accepted.float().mean((0, 2))
        for luck in (DecisionLuck.fixed, DecisionLuck.fresh)
    )
    # Of 64 uniforms and of 16 times as many: √(0.3·0.7/64) = 0.0573 and a quarter of it.
    assert abs(fixed.mean() - 0.3) < 4 * 0.0573 / 200**0.5
    assert fixed.std().item() == pytest.approx(0.0573, rel=0.2)
    assert fresh.std().item() == pytest.approx(0.0573 / 4, rel=0.2)


def test_labels_of_the_rejected_stay_hidden_and_decisions_follow_the_propensity(credit: PreparedData) -> None:
    learner = coin(0.3)
    history = lived(learner, credit, 30, 3)
    accepted = history.accepted
    label = history.label
    assert abs(accepted.float().mean() - 0.3) < 0.02
    for t, decided in enumerate(learner.seen):
        assert torch.equal(decided.label, label[t] * decided.accepted)
        assert (decided.propensity == torch.tensor(0.3)).all()
    assert label[~accepted].mean() > 0.5
    sampled = history.measures["utility_sampled"]  # evaluations share their random numbers
    assert torch.equal(sampled, sampled[0].expand(31, -1))


def test_evaluation_is_at_its_cost_on_its_people(credit: PreparedData) -> None:
    measured = Evaluator(credit.validation, 0.2, [0, 1]).measure(coin(0.4))
    expected = 0.4 * (credit.validation.label.mean() - 0.2)
    torch.testing.assert_close(measured["utility"], expected.expand(2))
    assert measured["dpu"].tolist() == pytest.approx([0.0, 0.0], abs=1e-6)


class WarmedUp(By):
    """Counts the epochs of its warm-up."""

    epochs: int = 0

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        assert epoch == self.epochs
        self.epochs += 1
        return {}


def test_the_warm_up_is_of_the_first_of_the_pool_and_every_epoch_and_step_is_taken_once(
    credit: PreparedData, compose_config: ComposeConfig, tmp_path: Path
) -> None:
    config = compose_config("preset=quick", "schedule.warm_up_epochs=3")
    policy = LogisticPolicy(config.initial_policy)
    learner = WarmedUp(coin(0.5).of)
    decided = initially_decided(policy, config, credit)
    torch.testing.assert_close(decided.x, credit.pool.x[:128].expand(2, -1, -1))
    propensity = torch.tensor(policy.propensity(credit.pool_table)[:128], dtype=torch.float32)
    torch.testing.assert_close(decided.propensity, propensity.expand(2, -1))
    accepted = torch.tensor(policy.decide(credit.pool_table)[:128])
    assert (decided.accepted == accepted).all()
    assert (decided.label == credit.pool.label[:128] * accepted).all()
    learner.setting = Setting.of(credit.schema, config)
    training = Training(learner, policy, config, World(config, credit, learner.setting.seeds))
    checkpoint = Checkpoint(tmp_path / "checkpoint.pt", "none", seconds=float("inf"))
    training.run(checkpoint, no_cache(), Display(progress_only=True))
    assert (learner.epochs, len(learner.seen)) == (3, config.schedule.time_steps)


def test_a_counterfactual_is_of_the_other_group_by_the_same_random_numbers(
    credit: PreparedData, synthetic: PreparedData
) -> None:
    by_group = By(lambda x, s, *_: torch.sigmoid(s))
    measured = Evaluator(synthetic.test, 0.5, [0]).measure(by_group)
    between = torch.sigmoid(torch.tensor(1.0)) - torch.sigmoid(torch.tensor(-1.0))
    torch.testing.assert_close(measured["cfu"], between.expand(1))
    history = lived(by_group, synthetic, 30)
    flipped = history.accepted != history.recorded().applicants["counterfactually_accepted"]
    assert flipped.float().mean().item() == pytest.approx(between.item(), abs=0.03)
    # Within a group the other attribute moves everybody the same way, and draws of the score are the same.
    drawn = By(lambda x, s, streams, _: torch.sigmoid(x[..., 0] + 8.0 * (streams.uniform(s.shape[1]) - 0.5)))
    history = lived(drawn, synthetic, 40)
    other = history.recorded().applicants["counterfactually_accepted"]
    assert ((history.accepted >= other) | (history.s < 0)).all()
    end = measure_table(history.recorded(), [0, 1], cost=0.4).query("time_step == 40")
    flipped = (history.accepted != other).float().mean((0, 2))
    assert end["effective_cfu"].to_numpy() == pytest.approx(flipped.numpy(), abs=1e-6)
    # By common random numbers as many flip as the propensities differ: no more.
    assert end["effective_cfu"].mean() == pytest.approx(end["cfu"].mean(), abs=0.03)
    # Without counterfactuals their measures are empty.
    table = measure_table(lived(coin(0.5), credit, 2).recorded(), [0, 1], cost=0.5)
    names = ["cfu", "ground_truth_utility", "effective_cfu", "effective_ground_truth_utility"]
    assert table[names].isna().all(axis=None)


def decided_with(learner: By, seed: int, digits: int = 4) -> list[float]:
    """The propensity of each step in one seed, the same for all its applicants."""
    steps = [decided.propensity[seed].unique() for decided in learner.seen]
    return [round(propensity.item(), digits) for propensity in steps]


def test_stuck_seeds_explore_after_so_many_steps_until_somebody_is_accepted(credit: PreparedData) -> None:
    learner = coin(0.0, 0.01, 0.0)
    history = lived(learner, credit, 40, 3, exploration=stuck(3, 0.2))
    assert decided_with(learner, 0) == decided_with(learner, 2) == 10 * [0.0, 0.0, 0.0, 0.2]
    explored = history.accepted[3::4][:, [0, 2]].float()
    assert explored.mean().item() == pytest.approx(0.2, abs=0.05)
    # The policy is measured without exploration.
    assert (history.measures["utility"][:, 0] == 0).all()
    # The seed beside them accepts somebody now and then, and is left alone as long as it does.
    rare = history.accepted[:, 1].any(-1).tolist()
    expected = [0.2 if t >= 3 and not any(rare[t - 3 : t]) else 0.01 for t in range(40)]
    assert decided_with(learner, 1) == expected
    assert 0.01 in expected[3:]


def test_exploration_goes_on_while_nobody_is_accepted_and_lowers_no_propensity(credit: PreparedData) -> None:
    learner = coin(0.0)
    lived(learner, credit, 6, exploration=stuck(2, 1e-6))
    assert decided_with(learner, 0, digits=7) == [0.0] * 2 + [1e-6] * 4
    waking = By(lambda x, s, _, n: 0.7 * (s > 0) * float(n >= 2))
    lived(waking, credit, 3, exploration=stuck(2, 0.2))
    explored = waking.seen[2]
    torch.testing.assert_close(explored.propensity, torch.where(explored.s > 0, 0.7, 0.2))


def test_exploration_is_of_counterfactuals_too(synthetic: PreparedData) -> None:
    history = lived(coin(0.0), synthetic, 4, exploration=stuck(1, 0.5))
    assert history.counted[1].any()
    assert torch.equal(history.counted, history.recorded().applicants["counterfactually_accepted"])


def test_without_exploration_a_policy_that_accepts_nobody_stays_so(credit: PreparedData) -> None:
    history = lived(learner := coin(0.0), credit, 30)
    assert not history.accepted.any()
    assert set(decided_with(learner, 0)) == {0.0}
    assert history.longest_rejection.tolist() == [30, 30]


def test_the_propensities_kept_are_those_of_the_decisions_taken(credit: PreparedData) -> None:
    guards: dict[str, Any] = {"decide_again": True, "exploration": stuck(2, 0.2)}
    history = lived(learner := rarer(), credit, 40, keep_propensity=True, **guards)
    assert torch.equal(history.propensity, torch.stack([decided.propensity for decided in learner.seen]))
    assert (history.propensity[20:] == torch.tensor(0.2)).any()
    again = lived(rarer(), credit, 40, **guards)
    assert "propensity" not in again.steps.read()
    assert torch.equal(again.counted, history.counted)


def test_a_step_with_other_values_than_those_before_is_refused() -> None:
    records = Records()
    records.append({"s": torch.zeros(2)})
    for other in ({"s": torch.zeros(3)}, {"t": torch.zeros(2)}, {"s": torch.zeros(2).double()}):
        with pytest.raises(FairAllError, match="time step 2 has "):
            records.append(other)
    assert len(records) == 1


@pytest.mark.parametrize("again", [False, True])
def test_effective_measures_count_what_is_decided_at_first_or_again(
    again: bool, synthetic: PreparedData
) -> None:
    # Accepts the advantaged, after one update the others, after the next the advantaged again.
    learner = By(lambda x, s, _, n: (s * (-1) ** n > 0).float())
    history = lived(learner, synthetic, 5, decide_again=again)
    s = history.s
    label = history.label
    applicants = history.recorded().applicants
    first_choice = (s * torch.tensor([1.0, -1, 1, -1, 1])[:, None, None]) > 0
    counted = ~first_choice if again else first_choice
    assert torch.equal(history.accepted, first_choice)
    assert torch.equal(history.counted, counted)
    assert torch.equal(applicants["counterfactually_accepted"], ~counted)
    expected = {"accepted": first_choice, "propensity": first_choice.float(), "label": label * first_choice}
    for name, values in expected.items():
        assert torch.equal(torch.stack([vars(decided)[name] for decided in learner.seen]), values)

    def rates(accepted: Tensor, s: Tensor, *over: int) -> list[Tensor]:
        return [(accepted & group).sum(over) / group.sum(over) for group in (s > 0, s < 0)]

    of_all = rates(counted, s, 0, 2)
    last = rates(counted[-1], s[-1], 1)
    truth = applicants["ground_truth"]
    expected = {
        "acceptance_rate": counted[-1].float().mean(-1),
        "effective_utility": (counted * (label - 0.4)).mean((0, 2)),
        "effective_dpu_pooled": (of_all[0] - of_all[1]).abs(),
        "acceptance_rate_advantaged": last[0],
        "acceptance_rate_disadvantaged": last[1],
        "effective_ground_truth_utility": (counted * (truth - 0.4)).mean((0, 2)),
    }
    end = measure_table(history.recorded(), [0, 1], cost=0.4).query("time_step == 5")
    for name, values in expected.items():
        assert end[name].to_numpy() == pytest.approx(values.numpy(), abs=1e-6)


def test_largest_weight_is_of_the_accepted(credit: PreparedData) -> None:
    learner = By(lambda x, s, *_: torch.sigmoid(4.0 * x[..., 0]))
    history = lived(learner, credit, 10, keep_propensity=True)
    p = history.propensity
    largest = torch.where(history.accepted, 1 / p, 1.0).amax((0, 2))
    assert torch.equal(history.largest_weight, largest)
    assert (largest < 1 / p.amin((0, 2))).all()
    # With exploration, of decisions taken and not of those decided again, and 1 where nobody is accepted.
    seeds = coin(0.0, 0.5, 0.01)
    for steps, expected in ((3, 1.0), (30, 5.0)):
        found = lived(seeds, credit, steps, 3, exploration=stuck(4, 0.2)).largest_weight
        assert found[0].item() == pytest.approx(expected)
    assert found.tolist() == pytest.approx([5, 2, 100])
    again = lived(rarer(), credit, 3, 1, decide_again=True)
    assert again.counted[2].any()
    assert again.largest_weight.tolist() == pytest.approx([4])


def recorded(accepted: list[str], counted: str = "1111111") -> History:
    """The history of seeds whose steps are 1 where one of two applicants is accepted, 0 where nobody is."""
    history = History(len(accepted))
    nobody = torch.zeros(len(accepted), 2)

    def decisions(step: list[str]) -> Decisions:
        somebody = torch.tensor([[False, word == "1"] for word in step])
        return Decisions(nobody + 0.5, somebody)

    for step, again in zip(zip(*accepted, strict=True), counted, strict=True):
        counts = decisions([again] * len(accepted))
        history.record(People(nobody, nobody, nobody), decisions([*step]), counts, {}, {})
    return history


def test_rejections_in_a_row_are_of_decisions_taken() -> None:
    seeds = ["0011000", "1111111", "0000000", "1000101", "0001000", "1111100"]
    assert recorded(seeds).longest_rejection.tolist() == [3, 0, 7, 3, 3, 2]
    assert History(2).longest_rejection.tolist() == [0, 0]
    history = recorded([*seeds[:3], "0000001"])
    for steps, expected in ((3, [1, 0, 1, 0]), (4, [0, 0, 1, 0]), (7, [0, 0, 1, 0]), (8, [0] * 4)):
        assert history.taken.rejected_all(steps).tolist() == [bool(value) for value in expected]


GUARDS: list[dict[str, Any]] = [
    {},
    {"decide_again": True, "exploration": stuck(2, 0.1)},
    {"luck": DecisionLuck.fixed, "keep_propensity": True},
]


@pytest.mark.parametrize(
    ("name", "guards"), zip(["credit", "synthetic", "credit"], GUARDS, strict=True), ids=range(3)
)
def test_going_on_from_a_saved_state_changes_nothing(
    name: str, guards: dict[str, Any], request: pytest.FixtureRequest, compose_config: ComposeConfig
) -> None:
    config = compose_config("preset=quick", f"dataset={name}", "model.elbo_samples=2", "model.kl_samples=3")
    data = request.getfixturevalue(name)
    given = Setting.of(data.schema, config)
    undisturbed, resumed = (online(FairAll(config.model, given), data, **guards) for _ in range(2))
    assert_resumed_alike(undisturbed, resumed, 3, 6)


def test_going_on_amid_rejections_explores_when_it_would_have(credit: PreparedData) -> None:
    guards: dict[str, Any] = {"exploration": stuck(4, 0.2), "decide_again": True}
    whole, resumed = (online(coin(0.0, 0.5), credit, **guards) for _ in range(2))
    assert_resumed_alike(whole, resumed, 3, 7)
    assert resumed.history.accepted[:, 0].any(-1).tolist() == 4 * [False] + [True] + 2 * [False]
    assert resumed.history.largest_weight.tolist() == pytest.approx([5, 2])
    assert resumed.history.longest_rejection.tolist() == [4, 0]
