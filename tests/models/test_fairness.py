"""Thresholds on top of methods: what they are chosen from, what they reach, and what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fairall import run
from fairall.config.compose import compose_config
from fairall.config.schema import FairnessConfig, FairnessRule, ModelConfig
from fairall.data.people import Decided
from fairall.display.progress import Display
from fairall.errors import FairAllError
from fairall.experiment import job
from fairall.models.fairness import BlindThresholds, FairThresholds
from fairall.models.learner import DecisionRule, Learner, Setting
from fairall.online.training import Training
from fairall.policy import Policy
from fairall.runtime.randomness import SeedStreams
from fairall.storage.checkpoint import Checkpoint
from tests.conftest import MakeSetting, no_cache, training_of

pytestmark = pytest.mark.usefixtures("undrawn")

QUICK = ("preset=quick", "tracking.enabled=false")
PARITY = FairnessConfig(rule=FairnessRule.demographic_parity, slack=0.0, blind=False, window=4096)


class Known(Learner):
    """Its log odds are the first feature, and 0.1 more after each update if it `moves`."""

    moved: Tensor

    def __init__(self, setting: Setting, *, moves: bool = False) -> None:
        super().__init__(ModelConfig(name="known"), setting)
        self.moves = moves
        self.register_buffer("moved", torch.zeros(()))

    def warm_up_epoch(self, decided: Decided, epoch: int) -> dict[str, float]:
        return {}

    def update(self, decided: Decided) -> None:
        self.moved = self.moved + 0.1 * self.moves

    def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return torch.sigmoid(x[..., 0] + self.moved)


def people(seeds: int, n: int, start: int) -> Decided:
    """People of whom S = +1 have greater log odds by 1.5, all rejected."""
    draw = torch.Generator().manual_seed(start)
    s = 2.0 * (torch.rand(seeds, n, generator=draw) < 0.7) - 1.0
    x = torch.stack(
        [torch.randn(seeds, n, generator=draw) + 0.75 * s, torch.randn(seeds, n, generator=draw)], -1
    )
    return Decided(x, s, torch.zeros(seeds, n), torch.zeros(seeds, n).bool(), torch.zeros(seeds, n))


def trained(folder: Path, *words: str) -> Training:
    """A quick run with equal acceptance rates, after all phases."""
    training = training_of(*words, "preset=quick", "fairness=demographic_parity")
    training.run(Checkpoint(folder / "state", "state", seconds=9e9), no_cache(), Display(progress_only=True))
    return training


def fed(learner: FairThresholds, steps: range) -> FairThresholds:
    """The learner after updates on 64 people each."""
    for step in steps:
        learner.update(people(len(learner.setting.seeds), 64, step))
    return learner


def gaps(learner: Learner, x: Tensor, s: Tensor) -> list[float]:
    """Acceptance rate of S = +1 less that of S = −1 by seed."""
    pi = learner.propensity(x, s, SeedStreams(learner.setting.seeds, "any"))
    return [(own[of > 0].mean() - own[of < 0].mean()).item() for own, of in zip(pi, s, strict=True)]


def test_rejected_people_alone_are_enough_to_choose_the_best_thresholds(
    two_features: MakeSetting,
) -> None:
    setting = two_features([0, 1])
    learner = fed(FairThresholds(PARITY, Known(setting)), range(60))
    new = people(2, 20_000, 1000)
    # 0.5 / √(number of S = −1 in the window) is 0.015.
    assert gaps(learner, new.x, new.s) == pytest.approx([0.0, 0.0], abs=0.05)
    pi = learner.propensity(new.x, new.s, SeedStreams([0, 1], "any"))
    cost, p = setting.cost, torch.sigmoid(new.x[..., 0])
    for e in range(2):
        # The best common rate, by brute force on the new people.
        best = -np.inf
        for rate in np.linspace(0.01, 0.99, 99):
            total = 0.0
            for own in (new.s[e] < 0, new.s[e] > 0):
                least = p[e][own].quantile(1.0 - rate)
                total += ((p[e][own] >= least) * (p[e][own] - cost)).sum().item()
            best = max(best, total / 20_000)
        assert (pi[e] * (p[e] - cost)).mean().item() > best - 0.004


def test_an_estimate_that_moves_takes_the_thresholds_with_it(two_features: MakeSetting) -> None:
    still, moving = (
        fed(FairThresholds(PARITY, Known(two_features([0]), moves=moves)), range(20))
        for moves in (False, True)
    )
    # Everybody's log odds, also of people seen long ago, are greater by 0.1 for each update.
    seen = moving.seen.rows()
    now = moving.learner.log_odds(seen.x, seen.s, moving.streams)
    torch.testing.assert_close(seen.log_odds, now)  # type: ignore[attr-defined]
    assert not torch.equal(still.threshold, moving.threshold)


def test_a_learner_that_stays_as_it_is_is_not_asked_again(
    two_features: MakeSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Known(two_features([0]))
    learner, asked, log_odds = FairThresholds(PARITY, known), [], known.log_odds

    def counted(x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        asked.append(x.shape[1])
        return log_odds(x, s, streams)

    monkeypatch.setattr(known, "log_odds", counted)
    for t, known.unchanged in enumerate((False, True, True, False)):
        fed(learner, range(t, t + 1))
    assert asked == [64, 64, 64, 64, 64, 256]


def test_the_window_begins_with_the_pool() -> None:
    training = training_of("model=greedy", "dataset=credit", "fairness=demographic_parity", "seeds=2")
    learner, data = training.learner, training.data
    assert isinstance(learner, FairThresholds)
    learner.pretrain(data, no_cache(), lambda **_: None)
    seen = learner.seen.rows()
    assert torch.equal(seen.x, data.pool.x.expand(2, -1, -1))
    assert torch.equal(seen.s, data.pool.s.expand(2, -1))
    assert not seen.accepted.any()
    learner.choose()
    assert gaps(learner, seen.x, seen.s)[0] == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize("slack", [0.1, 0.25])
def test_the_gap_is_the_slack_where_it_binds(slack: float, two_features: MakeSetting) -> None:
    bound = replace(PARITY, slack=slack)
    learner = fed(FairThresholds(bound, Known(two_features([0]))), range(60))
    seen = learner.seen.rows()
    assert gaps(learner, seen.x, seen.s) == pytest.approx([slack], abs=0.01)


@pytest.mark.whole
def test_slack_1_is_no_bound(tmp_path: Path) -> None:
    words = ["model=greedy", "dataset=fico", *QUICK, f"outputs_dir={tmp_path}"]
    free = run(compose_config(*words))
    bound = run(compose_config(*words, "fairness=demographic_parity", "fairness.slack=1"))
    assert free.per_seed["effective_utility"].equals(bound.per_seed["effective_utility"])
    assert free.steps["dpu"].equals(bound.steps["dpu"])


def test_log_odds_of_a_cost_sensitive_score_are_those_of_the_label(setting: MakeSetting) -> None:
    """A classifier that minimises the cost-sensitive loss has σ(score) = ½ where p = c (Elkan 2001)."""
    c = setting([0]).cost

    class Sensitive(Known):
        rule = DecisionRule()

        def score(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
            p = torch.sigmoid(x[..., 0])
            return p * (1 - c) / (p * (1 - c) + (1 - p) * c)

    x = torch.linspace(-3.0, 3.0, 7).view(1, 7, 1)
    found = Sensitive(setting([0])).log_odds(x, torch.ones(1, 7), SeedStreams([0], "any"))
    torch.testing.assert_close(found.float(), x[..., 0], atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    "method",
    [
        *"plot consequential unfairlog fairall_II dcem".split(),
        *(
            pytest.param(method, marks=pytest.mark.whole)
            for method in "adopt neural_ucb sellf_one_step multiple_imputation".split()
        ),
    ],
)
def test_other_methods_are_fairer_with_thresholds_than_without(method: str, tmp_path: Path) -> None:
    words = [f"model={method}", "dataset=fico", *QUICK, f"outputs_dir={tmp_path}", "exploration=none"]
    words.append("schedule.warm_up_epochs=8")
    with_bound = run(compose_config(*words, "fairness=demographic_parity", "schedule.time_steps=15"))
    assert with_bound.last("dpu").mean() < 0.2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        *(
            (f"model={method}", f"fairness=demographic_parity: model={method} has no estimate")
            for method in ("random", "accept_all", "oracle", "fair_reductions", "explore_exploit")
        ),
        ("model=greedy fairness.slack=1.5", r"fairness\.slack.*1\.5"),
        (
            "model=fairall_I_II fairness.blind=true",
            r"fairness\.blind=true: model=fairall_I_II is no classifier",
        ),
        ("model=greedy fairness.blind=true world=capacity", r"without world\.capacity"),
    ],
)
def test_methods_and_values_without_thresholds_are_refused(words: str, said: str) -> None:
    with pytest.raises(FairAllError, match=said):
        job(compose_config("dataset=fico", "fairness=demographic_parity", *words.split()))


@pytest.mark.whole
def test_places_go_by_thresholds_at_equal_rates(tmp_path: Path) -> None:
    words = "model=ensemble dataset=fico world=capacity world.capacity.share=0.25 schedule.time_steps=30"
    training = trained(tmp_path, *words.split())
    learner, people = training.learner, training.evaluation.stacked
    assert isinstance(learner, FairThresholds)
    assert learner.share == 0.25
    wanted = learner.propensity(people.x, people.s, SeedStreams(training.evaluation.seeds, "any"))
    assert wanted.mean().item() == pytest.approx(0.25, abs=0.06)


def test_a_saved_policy_decides_by_the_thresholds(tmp_path: Path) -> None:
    result = run(compose_config("model=parity_ensemble", "dataset=credit", *QUICK, f"outputs_dir={tmp_path}"))
    assert result.path is not None
    policy = Policy.load(result.path / "policy")
    learner = policy.learner
    assert isinstance(learner, FairThresholds)
    assert not torch.equal(learner.threshold[:, 0], learner.threshold[:, 1])


@pytest.mark.whole
def test_blind_decisions_do_not_depend_on_s_and_are_fair(tmp_path: Path) -> None:
    words = "model=greedy dataset=fico schedule.time_steps=60 evaluation.window=[30,60] fairness.blind=true"
    training = trained(tmp_path, *words.split())
    learner, people = training.learner, training.evaluation.stacked
    assert isinstance(learner, BlindThresholds)
    streams = SeedStreams(training.evaluation.seeds, "any")
    pi = learner.propensity(people.x, people.s, streams)
    assert torch.equal(pi, learner.propensity(people.x, -people.s, streams))
    assert max(map(abs, gaps(learner, people.x, people.s))) < 0.15  # 0.5 and more without thresholds


def test_resumed_from_any_state_the_thresholds_are_the_same(two_features: MakeSetting) -> None:
    def fresh() -> FairThresholds:
        return FairThresholds(replace(PARITY, window=200), Known(two_features([0, 1]), moves=True))

    whole, resumed = fed(fresh(), range(9)), fresh()
    resumed.load_training_state(fed(fresh(), range(4)).training_state())
    fed(resumed, range(4, 9))
    torch.testing.assert_close(resumed.training_state(), whole.training_state(), rtol=0, atol=0)


def test_a_small_group_is_told_of(two_features: MakeSetting) -> None:
    words = ["model=ensemble", "dataset=credit", "fairness=demographic_parity", "fairness.window=50"]
    notes = training_of(*words).learner.notes(training_of(*words).data)
    assert any("rests on about" in note and "fairness.window=50" in note for note in notes)
