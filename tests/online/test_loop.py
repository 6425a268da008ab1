"""Phase II: who applies, who is accepted, what the learner sees, and what is recorded of it."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from fairall.config.compose import typed_config
from fairall.data.people import Decided
from fairall.data.prepared import PreparedData
from fairall.display.progress import Display
from fairall.errors import FairAllError
from fairall.measuring.summary import series_of, table_of
from fairall.models.learner import Learner
from fairall.online.evaluation import History, Records
from fairall.online.training import Training
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Checkpoint
from tests.conftest import (
    Shown,
    assert_resumed_alike,
    no_cache,
    run_online,
    training_by,
    training_of,
)

AGAIN = "protocol.effective=decided_again"
FIXED = "protocol.decision_luck=fixed"
KEPT = "evaluation.decisions=true"


class By(Shown):
    """Accepts by a function of x, s, streams and the number of updates so far; counts warm-up epochs."""

    epochs: int = 0

    def __init__(self, of: Callable[[Tensor, Tensor, SeedStreams, int], Tensor]) -> None:
        super().__init__()
        self.of = of

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return self.of(x, s, streams, len(self.seen))

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        assert epoch == self.epochs
        self.epochs += 1
        return {}


def coin(*of_seeds: float) -> By:
    """Accepts with one probability, or with one of each seed."""
    return By(lambda x, s, *_: torch.tensor(of_seeds).unsqueeze(-1).expand(s.shape))


def rarer() -> By:
    """Accepts half as often after every update."""
    return By(lambda x, s, _, n: torch.full(s.shape, 0.5**n))


def stuck(after: int, propensity: float) -> str:
    """Exploration of seeds that have accepted nobody for some steps."""
    return f"exploration=stuck exploration.after={after} exploration.propensity={propensity}"


def online(learner: Learner, data: PreparedData, *words: str, seeds: int = 2) -> Training:
    usual = f"preset=quick initial_policy=random schedule.applicants=64 seeds={seeds}"
    return training_by(learner, typed_config(*" ".join([usual, *words]).split()), data)


def lived(learner: Learner, data: PreparedData, steps: int, *words: str, seeds: int = 2) -> History:
    """The history of some time steps."""
    return run_online(online(learner, data, *words, seeds=seeds), steps)


@pytest.mark.parametrize(("size", "one_order"), [(70, False), (64, True), (1000, True)])
def test_everyone_applies_once_per_pass_in_an_order_of_the_seeds_own(
    size: int, one_order: bool, credit: PreparedData
) -> None:
    stream = credit.applicants(size, [0, 1], one_order=one_order)
    steps = math.ceil(700 / size)
    passes = [torch.cat([stream.next().x for _ in range(steps)], dim=1) for _ in range(2)]
    # In one order a person keeps the position in their time step.
    assert torch.equal(*passes) == one_order
    assert not torch.equal(*passes[0])
    for one in torch.cat(passes):
        assert torch.equal(one[:700].sort(0).values, credit.train.x.sort(0).values)
        assert torch.equal(one[700:], one[: len(one) - 700])  # fill the last step up


def test_fixed_luck_decides_alike_at_every_step_and_again_after_the_update(credit: PreparedData) -> None:
    fixed, fresh = (lived(coin(0.5), credit, 30, AGAIN, *luck).steps.read() for luck in ([FIXED], []))
    first = fixed["accepted"][0]
    assert not torch.equal(*first)
    for name in ("accepted", "counted"):
        assert torch.equal(fixed[name], first.expand_as(fixed[name]))
    assert not torch.equal(*fresh["accepted"][:2])
    # Deciding again is with luck of its own.
    for share in (fresh["counted"], fresh["counted"] == fresh["accepted"]):
        assert share.float().mean().item() == pytest.approx(0.5, abs=0.05)


def test_labels_of_the_rejected_stay_hidden_and_decisions_follow_the_propensity(credit: PreparedData) -> None:
    history = lived(learner := coin(0.3), credit, 30, seeds=3)
    assert abs(history.steps["accepted"].float().mean() - 0.3) < 0.02
    for label, decided in zip(history.steps["label"], learner.seen, strict=True):
        assert torch.equal(decided.label, label * decided.accepted)
        assert (decided.propensity == torch.tensor(0.3)).all()
    assert history.steps["label"][~history.steps["accepted"]].mean() > 0.5
    # Evaluations share their random numbers.
    sampled = history.measured["utility_sampled"]
    assert torch.equal(sampled, sampled[0].expand(31, -1))


def test_the_warm_up_is_of_the_first_of_the_pool_and_every_epoch_and_step_is_taken_once(
    credit: PreparedData, tmp_path: Path
) -> None:
    config = typed_config("preset=quick", "schedule.warm_up_epochs=3")
    training = training_by(learner := coin(0.5, 0.5), config, credit)
    policy, table = config.initial_policy.build(), credit.pool_table
    accepted, propensity = (torch.tensor(of(table)[:128]) for of in (policy.decide, policy.propensity))
    for name, expected in {
        "x": credit.pool.x[:128],
        "propensity": propensity.float(),
        "accepted": accepted,
        "label": credit.pool.label[:128] * accepted,
    }.items():
        of_seeds = vars(training.decided)[name]
        assert torch.equal(of_seeds, expected.expand_as(of_seeds))
    training.run(Checkpoint(tmp_path / "none", "", 1.0), no_cache(), Display(progress_only=True))
    assert (learner.epochs, len(learner.seen)) == (3, config.schedule.time_steps)


def test_a_counterfactual_is_of_the_other_group_by_the_same_random_numbers(
    credit: PreparedData, synthetic: PreparedData
) -> None:
    # Within a group the other attribute moves everybody the same way, and draws of the score are the same.
    drawn = By(
        lambda x, s, streams, _: torch.sigmoid(x[..., 0] + s + 8.0 * (streams.uniform(s.shape[1]) - 0.5))
    )
    history = lived(drawn, synthetic, 40)
    other = history.recorded().applicants["counterfactually_accepted"]
    assert ((history.steps["accepted"] >= other) | (history.steps["s"] < 0)).all()
    end = table_of(series_of(history.recorded(), 0.4), [0, 1]).query("time_step == 40")
    # By common random numbers as many flip as the propensities differ: no more.
    assert end["effective_cfu"].mean() == pytest.approx(end["cfu"].mean(), abs=0.03)
    # Exploration is of counterfactuals too.
    explored = lived(coin(0.0), synthetic, 4, stuck(1, 0.5)).steps.read()
    assert explored["accepted"][1].any()
    assert torch.equal(explored["accepted"], explored["counterfactually_accepted"])
    # Without counterfactuals their measures are empty.
    table = table_of(series_of(lived(coin(0.5), credit, 2).recorded(), 0.5), [0, 1])
    names = ["cfu", "ground_truth_utility", "effective_cfu", "effective_ground_truth_utility"]
    assert table[names].isna().all(axis=None)


def decided_with(learner: By, seed: int) -> list[float]:
    """The propensity of each step in one seed, the same for all its applicants."""
    return [round(decided.propensity[seed].unique().item(), 7) for decided in learner.seen]


def test_stuck_seeds_explore_after_so_many_steps_until_somebody_is_accepted(credit: PreparedData) -> None:
    history = lived(learner := coin(0.0, 0.01, 0.0), credit, 40, stuck(3, 0.25), seeds=3)
    assert decided_with(learner, 0) == decided_with(learner, 2) == 10 * [0.0, 0.0, 0.0, 0.25]
    explored = history.steps["accepted"][3::4][:, [0, 2]].float()
    assert explored.mean().item() == pytest.approx(0.25, abs=0.05)
    # The policy is measured without exploration.
    assert (history.measured["utility"][:, 0] == 0).all()
    # The seed beside them accepts somebody now and then, and is left alone as long as it does.
    rare = history.steps["accepted"][:, 1].any(-1).tolist()
    expected = [0.25 if t >= 3 and not any(rare[t - 3 : t]) else 0.01 for t in range(40)]
    assert decided_with(learner, 1) == expected
    assert 0.01 in expected[3:]


def test_exploration_goes_on_while_nobody_is_accepted_and_lowers_no_propensity(credit: PreparedData) -> None:
    for words, expected in ((stuck(2, 1e-6), [0.0] * 2 + [1e-6] * 4), ("exploration=none", [0.0] * 6)):
        history = lived(learner := coin(0.0), credit, 6, words)
        assert decided_with(learner, 0) == expected
        assert history.steps["rejections"][-1].tolist() == [6, 6]
    lived(waking := By(lambda x, s, _, n: 0.7 * (s > 0) * float(n >= 2)), credit, 3, stuck(2, 0.2))
    explored = waking.seen[2]
    torch.testing.assert_close(explored.propensity, torch.where(explored.s > 0, 0.7, 0.2))


def test_a_step_with_other_values_than_those_before_is_refused() -> None:
    records = Records()
    records.append({"s": torch.zeros(2)})
    with pytest.raises(FairAllError, match="a time step has "):
        records.append({"s": torch.zeros(3)})
    assert records.read()["s"].shape == (1, 2)


@pytest.mark.parametrize("again", [False, True])
def test_effective_measures_count_what_is_decided_at_first_or_again(
    again: bool, synthetic: PreparedData
) -> None:
    # Accepts the advantaged, after one update the others, after the next the advantaged again.
    learner = By(lambda x, s, _, n: (s * (-1) ** n > 0).float())
    history = lived(learner, synthetic, 5, *[AGAIN] * again)
    applicants, taken = (
        history.recorded().applicants,
        (history.steps["s"] * (-1) ** torch.arange(5)[:, None, None]) > 0,
    )
    counted = ~taken if again else taken
    found = [history.steps["accepted"], applicants["accepted"], applicants["counterfactually_accepted"]]
    for values, expected in zip(found, (taken, counted, ~counted), strict=True):
        assert torch.equal(values, expected)
    for name, values in {
        "accepted": taken,
        "propensity": taken.float(),
        "label": history.steps["label"] * taken,
    }.items():
        assert torch.equal(torch.stack([vars(decided)[name] for decided in learner.seen]), values)
    end = table_of(series_of(history.recorded(), 0.4), [0, 1]).query("time_step == 5")
    for name, label in {
        "utility": history.steps["label"],
        "ground_truth_utility": applicants["ground_truth"],
    }.items():
        expected = (counted * (label - 0.4)).mean((0, 2))
        assert end[f"effective_{name}"].to_numpy() == pytest.approx(expected.numpy(), abs=1e-6)


def test_weights_and_propensities_kept_are_of_the_decisions_taken(credit: PreparedData) -> None:
    words = AGAIN, stuck(4, 0.2)
    history = lived(learner := rarer(), credit, 40, KEPT, *words)
    p = history.steps["propensity"]
    assert torch.equal(p, torch.stack([decided.propensity for decided in learner.seen]))
    assert (p[20:] == torch.tensor(0.2)).any()
    weight = history.steps["largest_weight"]
    assert torch.equal(weight, torch.where(history.steps["accepted"], 1 / p, 1.0).amax(2))
    assert (weight < 1 / p.amin(2)).any()
    others = lived(rarer(), credit, 40, *words).steps.read()
    assert {*history.steps.read()} - {*others} == {"propensity"}
    # Of decisions taken and not of those decided again, and 1 where nobody is accepted.
    again = lived(rarer(), credit, 3, AGAIN, seeds=1)
    assert again.steps.read()["counted"][2].any()
    assert again.steps.read()["largest_weight"].flatten().tolist() == pytest.approx([1, 2, 4])
    assert (lived(coin(0.0), credit, 3).steps.read()["largest_weight"] == 1.0).all()


@pytest.mark.parametrize(
    "words",
    [
        f"dataset=credit model=fairlog {FIXED} {KEPT}",
        "model=greedy exploration=bounded exploration.propensity=0.25 model.updates=3",
    ],
    ids=range(2),
)
def test_going_on_from_a_saved_state_changes_nothing(words: str) -> None:
    undisturbed, resumed = (training_of(*words.split()) for _ in range(2))
    assert_resumed_alike(undisturbed, resumed, 3, 7)


def test_going_on_amid_rejections_explores_when_it_would_have(credit: PreparedData) -> None:
    whole, resumed = (online(coin(0.0, 0.5), credit, stuck(4, 0.2), AGAIN) for _ in range(2))
    assert_resumed_alike(whole, resumed, 3, 7)
    assert resumed.history.steps["accepted"][:, 0].any(-1).tolist() == 4 * [False] + [True] + 2 * [False]
    assert resumed.history.steps["largest_weight"].amax(0).tolist() == pytest.approx([5, 2])
