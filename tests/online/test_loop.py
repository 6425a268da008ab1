import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from fairall.config.schema import Config, DecisionLuck, ExplorationConfig, ExplorationRule
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
from fairall.worlds.part import WorldSetting
from fairall.worlds.world import World
from tests.conftest import (
    ComposeConfig,
    Shown,
    assert_resumed_alike,
    no_cache,
    run_online,
)


class Coin(Shown):
    """Accepts with a fixed probability and remembers what it was shown."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return torch.full(s.shape, self.probability)


def stuck(*, after: int, propensity: float) -> ExplorationConfig:
    """Exploration of seeds that have accepted nobody for some steps."""
    return ExplorationConfig(ExplorationRule.stuck, propensity=propensity, after=after)


def online(learner: Learner, data: PreparedData, seeds: list[int], **guards: Any) -> OnlineLearning:
    evaluation = Evaluator(data.test, 0.5, seeds)
    fixed = guards.get("luck") is DecisionLuck.fixed
    world = World(WorldSetting(data, seeds, applicants=64, time_steps=100, fixed_luck=fixed))
    return OnlineLearning(learner, world, evaluation, seeds, **guards)


def test_everyone_applies_once_per_pass_in_an_order_of_the_seeds_own(credit: PreparedData) -> None:
    stream = credit.applicants(70, [0, 1])
    people = torch.stack([stream.next().x for _ in range(20)])  # two passes over 700
    both = people.transpose(0, 1).reshape(2, 2, 700, -1)
    assert not (both[0, 0] == both[1, 0]).all()
    assert not (both[0, 0] == both[0, 1]).all()
    for one_pass in both.flatten(0, 1):
        assert torch.equal(one_pass.sort(0).values, credit.train.x.sort(0).values)


@pytest.mark.parametrize("size", [64, 70, 1000])
def test_in_one_order_a_person_keeps_the_position_in_their_time_step(credit: PreparedData, size: int) -> None:
    stream = credit.applicants(size, [0, 1], one_order=True)
    steps = math.ceil(700 / size)  # of a pass
    passes = [torch.stack([stream.next().x for _ in range(steps)]) for _ in range(3)]
    assert torch.equal(passes[0], passes[1])
    assert torch.equal(passes[0], passes[2])
    everybody = passes[0].transpose(0, 1).flatten(1, 2)
    assert not torch.equal(everybody[0], everybody[1])
    for one in everybody:
        assert torch.equal(one[:700].sort(0).values, credit.train.x.sort(0).values)
        again = one[700:]  # fill the last step up
        assert torch.equal(again, one[: len(again)])


def test_fixed_luck_decides_alike_at_every_step_and_again_after_the_update(credit: PreparedData) -> None:
    process = online(Coin(0.5), credit, [0, 1], decide_again=True, luck=DecisionLuck.fixed)
    history = run_online(process, 4)
    first = history.accepted[0]
    assert not torch.equal(first[0], first[1])
    assert 0 < first.float().mean() < 1
    for accepted, counted in zip(history.accepted, history.counted, strict=True):
        assert torch.equal(accepted, first)
        assert torch.equal(counted, first)
    fresh = run_online(online(Coin(0.5), credit, [0, 1]), 2)
    assert not torch.equal(fresh.accepted[0], fresh.accepted[1])


@pytest.mark.whole
def test_fixed_luck_leaves_the_mean_over_seeds_and_widens_their_spread(credit: PreparedData) -> None:
    seeds = list(range(200))

    def rates(luck: DecisionLuck) -> Tensor:
        return run_online(online(Coin(0.3), credit, seeds, luck=luck), 16).accepted.float().mean((0, 2))

    fixed, fresh = rates(DecisionLuck.fixed), rates(DecisionLuck.fresh)
    # Of 64 uniforms and of 16 times as many: √(0.3·0.7/64) = 0.0573 and a quarter of it.
    assert abs(fixed.mean() - 0.3) < 4 * 0.0573 / 200**0.5
    assert fixed.std().item() == pytest.approx(0.0573, rel=0.2)
    assert fresh.std().item() == pytest.approx(0.0573 / 4, rel=0.2)


def test_labels_of_the_rejected_stay_hidden_and_decisions_follow_the_propensity(credit: PreparedData) -> None:
    learner = Coin(0.3)
    history = run_online(online(learner, credit, [0, 1, 2]), 30)
    accepted, label = history.accepted, history.label
    assert abs(accepted.float().mean() - 0.3) < 0.02
    for t, decided in enumerate(learner.seen):
        assert (decided.label[~decided.accepted] == 0).all()
        assert (decided.label[decided.accepted] == label[t][decided.accepted]).all()
        assert (decided.propensity == torch.tensor(0.3)).all()
    assert label[~accepted].mean() > 0.5
    sampled = history.measures["utility_sampled"]  # evaluations share their random numbers
    assert (sampled == sampled[0]).all()
    assert len(sampled) == 31


def test_evaluation_is_at_its_cost_on_its_people(credit: PreparedData) -> None:
    measured = Evaluator(credit.validation, 0.2, [0, 1]).measure(Coin(0.4))
    expected = 0.4 * (credit.validation.label.mean() - 0.2)
    torch.testing.assert_close(measured["utility"], expected.expand(2))
    assert measured["dpu"].tolist() == pytest.approx([0.0, 0.0], abs=1e-6)


def test_warm_up_shows_the_first_of_the_pool_as_the_initial_policy_decided(
    credit: PreparedData, compose_config: ComposeConfig
) -> None:
    config = compose_config("preset=quick")
    policy = LogisticPolicy(config.initial_policy)
    decided = initially_decided(policy, config, credit)
    torch.testing.assert_close(decided.x, credit.pool.x[:128].expand(2, -1, -1))
    propensity = torch.tensor(policy.propensity(credit.pool_table)[:128], dtype=torch.float32)
    torch.testing.assert_close(decided.propensity, propensity.expand(2, -1))
    accepted = torch.tensor(policy.decide(credit.pool_table)[:128])
    assert (decided.accepted == accepted).all()
    assert (decided.label == credit.pool.label[:128] * accepted).all()


class WarmedUp(Coin):
    """Counts the epochs of its warm-up."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(0.5)
        self.setting = setting
        self.epochs: list[int] = []

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        self.epochs.append(epoch)
        return {}


def test_every_epoch_and_step_is_taken_once(
    credit: PreparedData, compose_config: ComposeConfig, tmp_path: Path
) -> None:
    config = compose_config("preset=quick", "schedule.warm_up_epochs=3")
    learner = WarmedUp(Setting.of(credit.schema, config))
    world = World.of(config, credit, learner.setting.seeds)
    training = Training(learner, LogisticPolicy(config.initial_policy), config, world)
    checkpoint = Checkpoint(tmp_path / "checkpoint.pt", "none", seconds=float("inf"))
    training.run(checkpoint, no_cache(), Display(progress_only=True))
    assert learner.epochs == [0, 1, 2]
    assert len(learner.seen) == config.schedule.time_steps


class Thresholds(Coin):
    """Accepts by the first feature, so that a person and their counterfactual differ."""

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        noise = streams.uniform(x.shape[1])
        return torch.sigmoid(x[..., 0] + 8.0 * (noise - 0.5))


def test_effective_measures_of_ground_truth_and_counterfactuals() -> None:
    data, seeds = load_dataset("synthetic").prepare(), [0, 1]
    learner = Thresholds(0.5)
    history = run_online(online(learner, data, seeds), 40)
    table = measure_table(history.recorded(), seeds, cost=0.4)
    end = table[table["time_step"] == 40].set_index("seed")
    accepted, truth, other = (
        part.float()
        for part in (
            history.accepted,
            history.recorded().applicants["ground_truth"],
            history.recorded().applicants["counterfactually_accepted"],
        )
    )
    for k in seeds:
        realised = (accepted[:, k] * (truth[:, k] - 0.4)).mean().item()
        assert end["effective_ground_truth_utility"][k] == pytest.approx(realised, abs=1e-6)
        flipped = (accepted[:, k] != other[:, k]).float().mean().item()
        assert end["effective_cfu"][k] == pytest.approx(flipped, abs=1e-6)
    # By common random numbers as many flip as the propensities differ: no more.
    assert end["effective_cfu"].mean() == pytest.approx(end["cfu"].mean(), abs=0.03)
    # Within a group the other attribute moves everybody the same way.
    s = history.s
    assert ((accepted >= other) | (s < 0)).all()


class ByGroup(Coin):
    """Accepts by the sensitive attribute alone."""

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return torch.sigmoid(s)


def test_a_counterfactual_is_of_the_other_group(credit: PreparedData) -> None:
    data = load_dataset("synthetic").prepare()
    measured = Evaluator(data.test, 0.5, [0]).measure(ByGroup(0.5))
    between = torch.sigmoid(torch.tensor(1.0)) - torch.sigmoid(torch.tensor(-1.0))
    torch.testing.assert_close(measured["cfu"], between.expand(1))
    history = run_online(online(ByGroup(0.5), data, [0]), 30)
    flipped = history.accepted != history.recorded().applicants["counterfactually_accepted"]
    assert flipped.float().mean().item() == pytest.approx(between.item(), abs=0.03)
    # Without counterfactuals their measures are empty.
    table = measure_table(run_online(online(Coin(0.5), credit, [0]), 2).recorded(), [0], cost=0.5)
    names = ["cfu", "ground_truth_utility", "effective_cfu", "effective_ground_truth_utility"]
    assert table[names].isna().all(axis=None)


def fairall(config: Config, data: PreparedData, seeds: list[int]) -> FairAll:
    return FairAll(
        config.model, Setting(data.schema, config.cost.value, seeds, config.schedule, config.protocol)
    )


class PerSeed(Coin):
    """Accepts with a fixed probability in each seed."""

    probabilities: Tensor

    def __init__(self, *probabilities: float) -> None:
        super().__init__(0.0)
        self.register_buffer("probabilities", torch.tensor(probabilities))

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return self.probabilities.unsqueeze(-1).expand(s.shape)


def decided_with(learner: Coin, seed: int, digits: int = 4) -> list[float]:
    """The propensity of each step in one seed, the same for all its applicants."""
    steps = [decided.propensity[seed].unique() for decided in learner.seen]
    return [round(propensity.item(), digits) for propensity in steps]


def test_stuck_seeds_explore_after_so_many_steps_until_somebody_is_accepted(credit: PreparedData) -> None:
    learner = PerSeed(0.0, 0.01, 0.0)
    explores = stuck(after=3, propensity=0.2)
    history = run_online(online(learner, credit, [0, 1, 2], exploration=explores), 40)
    assert decided_with(learner, 0) == 10 * [0.0, 0.0, 0.0, 0.2]
    assert decided_with(learner, 2) == decided_with(learner, 0)
    explored = history.accepted[3::4][:, [0, 2]].float()
    assert explored.mean().item() == pytest.approx(0.2, abs=0.05)
    # The seed beside them accepts somebody now and then, and is left alone as long as it does.
    rare = history.accepted[:, 1].any(-1).tolist()
    expected = [0.2 if t >= 3 and not any(rare[t - 3 : t]) else 0.01 for t in range(40)]
    assert decided_with(learner, 1) == expected
    assert 0.01 in expected[3:]


def test_the_propensities_kept_are_those_of_the_decisions_taken(credit: PreparedData) -> None:
    learner, explores = Rarer(0.0), stuck(after=2, propensity=0.2)
    guards = {"decide_again": True, "exploration": explores}
    history = run_online(online(learner, credit, [0, 1], keep_propensity=True, **guards), 40)
    assert len(history.propensity) == 40
    for kept, decided in zip(history.propensity, learner.seen, strict=True):
        assert torch.equal(kept, decided.propensity)
    raised = history.propensity[20:]
    assert (raised == torch.tensor(0.2)).any()
    again = run_online(online(Rarer(0.0), credit, [0, 1], **guards), 40)
    assert "propensity" not in again.steps.read()
    assert torch.equal(again.counted, history.counted)


def test_a_step_with_other_values_than_those_before_is_refused() -> None:
    records = Records()
    records.append({"s": torch.zeros(2)})
    for other in ({"s": torch.zeros(3)}, {"t": torch.zeros(2)}, {"s": torch.zeros(2).double()}):
        with pytest.raises(FairAllError, match="time step 2 has "):
            records.append(other)
    assert len(records) == 1


class Waking(Coin):
    """Accepts nobody for two steps, and then one group."""

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return 0.7 * (s > 0) * float(len(self.seen) >= 2)


def test_exploration_goes_on_while_nobody_is_accepted_and_lowers_no_propensity(credit: PreparedData) -> None:
    learner = PerSeed(0.0)
    run_online(online(learner, credit, [0], exploration=stuck(after=2, propensity=1e-6)), 6)
    assert decided_with(learner, 0, digits=7) == [0.0] * 2 + [1e-6] * 4
    waking = Waking(0.0)
    run_online(online(waking, credit, [0], exploration=stuck(after=2, propensity=0.2)), 3)
    explored = waking.seen[2]
    expected = torch.where(explored.s > 0, torch.tensor(0.7), torch.tensor(0.2))
    torch.testing.assert_close(explored.propensity, expected)


def test_the_policy_is_measured_without_exploration(credit: PreparedData) -> None:
    explores = stuck(after=1, propensity=1.0)
    history = run_online(online(PerSeed(0.0), credit, [0], exploration=explores), 4)
    assert history.accepted.any(-1).flatten().tolist() == [False, True, False, True]
    assert (history.measures["utility"] == 0).all()


def test_exploration_is_of_counterfactuals_too() -> None:
    data = load_dataset("synthetic", "dataset.rows.test=100").prepare()
    explores = stuck(after=1, propensity=0.5)
    history = run_online(online(PerSeed(0.0), data, [0], exploration=explores), 4)
    assert history.counted[1].any()
    for counted, other in zip(
        history.counted, history.recorded().applicants["counterfactually_accepted"], strict=True
    ):
        assert torch.equal(counted, other)


def test_without_exploration_a_policy_that_accepts_nobody_stays_so(credit: PreparedData) -> None:
    learner = PerSeed(0.0)
    history = run_online(online(learner, credit, [0]), 30)
    assert not history.accepted.any()
    assert set(decided_with(learner, 0)) == {0.0}
    assert history.longest_rejection.tolist() == [30]


class Alternating(Coin):
    """Accepts the advantaged, after one update the others, after the next the advantaged again."""

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return (s * (-1) ** len(self.seen) > 0).float()


@pytest.mark.parametrize("again", [False, True])
def test_effective_measures_count_what_is_decided_at_first_or_again(again: bool) -> None:
    data, seeds, learner = load_dataset("synthetic").prepare(), [0, 1], Alternating(0.0)
    history = run_online(online(learner, data, seeds, decide_again=again), 5)
    s, label = history.s, history.label
    first_choice = (s * torch.tensor([1.0, -1, 1, -1, 1])[:, None, None]) > 0
    counted = ~first_choice if again else first_choice
    assert torch.equal(history.accepted, first_choice)
    assert torch.equal(history.counted, counted)
    assert torch.equal(history.recorded().applicants["counterfactually_accepted"], ~counted)
    for t, decided in enumerate(learner.seen):
        assert torch.equal(decided.accepted, first_choice[t])
        assert torch.equal(decided.propensity, first_choice[t].float())
        assert torch.equal(decided.label, label[t] * first_choice[t])
    table = measure_table(history.recorded(), seeds, cost=0.4)
    for k in seeds:
        rows = table[(table["seed"] == k) & (table["time_step"] > 0)]
        rates = counted[:, k].float().mean(-1)
        assert rows["acceptance_rate"].to_numpy() == pytest.approx(rates.numpy(), abs=1e-6)
        realised = (counted[:, k] * (label[:, k] - 0.4)).mean().item()
        assert rows["effective_utility"].iloc[-1] == pytest.approx(realised, abs=1e-6)
        shares = [counted[:, k][s[:, k] == group].float().mean() for group in (1, -1)]
        gap = (shares[0] - shares[1]).abs().item()
        assert rows["effective_dpu_pooled"].iloc[-1] == pytest.approx(gap, abs=1e-6)
        for group, name in ((1, "advantaged"), (-1, "disadvantaged")):
            last = counted[-1, k][s[-1, k] == group].float().mean().item()
            assert rows[f"acceptance_rate_{name}"].iloc[-1] == pytest.approx(last, abs=1e-6)
        truth = history.recorded().applicants["ground_truth"][:, k]
        realised = (counted[:, k] * (truth - 0.4)).mean().item()
        assert rows["effective_ground_truth_utility"].iloc[-1] == pytest.approx(realised, abs=1e-6)


def test_deciding_again_is_with_luck_of_its_own(credit: PreparedData) -> None:
    history = run_online(online(Coin(0.5), credit, [0], decide_again=True), 30)
    taken, counted = history.accepted, history.counted
    assert counted.float().mean().item() == pytest.approx(0.5, abs=0.05)
    assert (taken == counted).float().mean().item() == pytest.approx(0.5, abs=0.05)


def test_largest_weight_is_of_the_accepted(credit: PreparedData) -> None:
    learner = Thresholds(0.5)
    history = run_online(online(learner, credit, [0, 1, 2]), 10)
    largest = [
        max((1 / decided.propensity[k][decided.accepted[k]]).max().item() for decided in learner.seen)
        for k in range(3)
    ]
    assert history.largest_weight.tolist() == pytest.approx(largest)
    rarest = torch.stack([decided.propensity for decided in learner.seen]).amin((0, 2))
    assert (history.largest_weight < 1 / rarest).all()


def test_largest_weight_is_with_exploration_and_1_where_nobody_is_accepted(credit: PreparedData) -> None:
    learner, explores = (PerSeed(0.0, 0.5, 0.01), stuck(after=4, propensity=0.2))
    assert run_online(online(learner, credit, [0, 1, 2], exploration=explores), 3).largest_weight[0] == 1
    explored = run_online(online(learner, credit, [0, 1, 2], exploration=explores), 30)
    assert explored.largest_weight.tolist() == pytest.approx([5, 2, 100])


class Rarer(Coin):
    """Accepts half as often after every update."""

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return torch.full(s.shape, 0.5 ** len(self.seen))


def test_largest_weight_is_of_decisions_taken_and_not_of_those_decided_again(credit: PreparedData) -> None:
    history = run_online(online(Rarer(0.0), credit, [0], decide_again=True), 3)
    assert history.counted[2].any()
    assert history.largest_weight.tolist() == pytest.approx([4])


def recorded(accepted: list[str], counted: list[str] | None = None) -> History:
    """The history of seeds whose steps are 1 where one of two applicants is accepted, 0 where nobody is."""
    history = History(len(accepted))
    nobody = torch.zeros(len(accepted), 2)

    def decisions(step: tuple[str, ...]) -> Decisions:
        somebody = torch.tensor([[False, word == "1"] for word in step])
        return Decisions(torch.full((len(step), 2), 0.5), somebody, None)

    for taken, again in zip(zip(*accepted, strict=True), zip(*counted or accepted, strict=True), strict=True):
        history.record(People(nobody, nobody, nobody), decisions(taken), decisions(again), {}, {})
    return history


def test_longest_rejection_is_the_most_steps_in_a_row() -> None:
    seeds = ["0011000", "1111111", "0000000", "1000101", "0001000", "1111100"]
    assert recorded(seeds).longest_rejection.tolist() == [3, 0, 7, 3, 3, 2]
    assert recorded(seeds, counted=6 * ["1111111"]).longest_rejection.tolist() == [3, 0, 7, 3, 3, 2]
    assert History(2).longest_rejection.tolist() == [0, 0]


def test_who_rejected_all_is_of_the_last_steps_taken() -> None:
    history = recorded(["0011000", "1111111", "0000000", "0000001"], counted=4 * ["1111111"])
    for steps, expected in ((3, [1, 0, 1, 0]), (4, [0, 0, 1, 0]), (7, [0, 0, 1, 0]), (8, [0] * 4)):
        assert history.taken.rejected_all(steps).tolist() == [bool(value) for value in expected]


GUARDS: list[dict[str, Any]] = [
    {},
    {"decide_again": True, "exploration": stuck(after=2, propensity=0.1)},
    {"luck": DecisionLuck.fixed, "keep_propensity": True},
]


@pytest.mark.parametrize(
    ("name", "guards"), zip(["credit", "synthetic", "credit"], GUARDS, strict=True), ids=range(3)
)
def test_going_on_from_a_saved_state_changes_nothing(
    name: str, guards: dict[str, Any], compose_config: ComposeConfig
) -> None:
    config = compose_config("preset=quick", f"dataset={name}", "model.elbo_samples=2", "model.kl_samples=3")
    data, seeds = load_dataset(name).prepare(), [0, 1]
    undisturbed, resumed = (online(fairall(config, data, seeds), data, seeds, **guards) for _ in range(2))
    assert_resumed_alike(undisturbed, resumed, 3, 6)


def test_going_on_amid_rejections_explores_when_it_would_have(credit: PreparedData) -> None:
    def process() -> OnlineLearning:
        explores = stuck(after=4, propensity=0.2)
        return online(PerSeed(0.0, 0.5), credit, [0, 1], exploration=explores, decide_again=True)

    resumed = process()
    assert_resumed_alike(process(), resumed, 3, 7)
    somebody = [accepted[0].any().item() for accepted in resumed.history.accepted]
    assert somebody == [False, False, False, False, True, False, False]
    assert resumed.history.largest_weight.tolist() == pytest.approx([5, 2])
    assert resumed.history.longest_rejection.tolist() == [4, 0]
