import io
from typing import Any

import pytest
import torch
from torch import Tensor

from fairall.compose import load_dataset
from fairall.config import Config
from fairall.data.people import Decided
from fairall.data.prepare import PreparedData
from fairall.evaluation import Evaluation
from fairall.experiment import initially_decided
from fairall.initial_policy import LogisticPolicy
from fairall.models.fairall import FairAll
from fairall.models.learner import Advance, Learner, Setting
from fairall.online import OnlineLearning
from fairall.randomness import SeedStreams
from fairall.summary import measure_table
from tests.conftest import ComposeConfig


class Coin(Learner):
    """Accepts with a fixed probability and remembers what it was shown."""

    def __init__(self, probability: float) -> None:
        super().__init__(None, None)  # type: ignore[arg-type]
        self.probability = probability
        self.seen: list[Decided] = []

    def warm_up(self, decided: Decided, advance: Advance) -> None:
        raise NotImplementedError

    def propensity(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return torch.full(s.shape, self.probability)

    def update(self, decided: Decided) -> None:
        self.seen.append(decided)


def online(learner: Learner, data: PreparedData, seeds: list[int]) -> OnlineLearning:
    return OnlineLearning(learner, data.applicants(64, seeds), Evaluation(data.test, 0.5, seeds), seeds)


def run(process: OnlineLearning, time_steps: int) -> Any:
    return process.run(time_steps, lambda **_: None, lambda: None)


def test_everyone_applies_once_per_pass_in_an_order_of_the_seeds_own(credit: PreparedData) -> None:
    stream = credit.applicants(70, [0, 1])
    people = torch.stack([stream.next().x for _ in range(20)])  # two passes over 700
    both = people.transpose(0, 1).reshape(2, 2, 700, -1)
    assert not (both[0, 0] == both[1, 0]).all()
    assert not (both[0, 0] == both[0, 1]).all()
    for one_pass in both.flatten(0, 1):
        assert torch.equal(one_pass.sort(0).values, credit.train.x.sort(0).values)


def test_labels_of_the_rejected_stay_hidden_and_decisions_follow_the_propensity(credit: PreparedData) -> None:
    learner = Coin(0.3)
    history = run(online(learner, credit, [0, 1, 2]), 30)
    accepted, label = torch.stack(history.accepted), torch.stack(history.label)
    assert abs(accepted.float().mean() - 0.3) < 0.02
    for t, decided in enumerate(learner.seen):
        assert (decided.label[~decided.accepted] == 0).all()
        assert (decided.label[decided.accepted] == label[t][decided.accepted]).all()
    assert label[~accepted].mean() > 0.5


def test_learner_is_told_the_propensity_it_decided_with(credit: PreparedData) -> None:
    learner = Coin(0.3)
    run(online(learner, credit, [0]), 2)
    assert all((decided.propensity == torch.tensor(0.3)).all() for decided in learner.seen)


def test_evaluation_is_at_its_cost_on_its_people(credit: PreparedData) -> None:
    measured = Evaluation(credit.validation, 0.2, [0, 1]).measure(Coin(0.4))
    expected = 0.4 * (credit.validation.label.mean() - 0.2)
    torch.testing.assert_close(measured["utility"], expected.expand(2))
    assert measured["dpu"].tolist() == pytest.approx([0.0, 0.0], abs=1e-6)


def test_warm_up_shows_the_first_of_the_pool_as_the_initial_policy_decided(
    credit: PreparedData, compose_config: ComposeConfig
) -> None:
    config = compose_config("preset=quick")
    decided = initially_decided(config, credit)
    policy = LogisticPolicy(config.initial_policy)
    torch.testing.assert_close(decided.x, credit.pool.x[:128].expand(2, -1, -1))
    propensity = torch.tensor(policy.propensity(credit.pool_table)[:128], dtype=torch.float32)
    torch.testing.assert_close(decided.propensity, propensity.expand(2, -1))
    accepted = torch.tensor(policy.decide(credit.pool_table)[:128])
    assert (decided.accepted == accepted).all()
    assert (decided.label == credit.pool.label[:128] * accepted).all()


def test_evaluations_share_their_random_numbers(credit: PreparedData) -> None:
    history = run(online(Coin(0.4), credit, [0, 1]), 3)
    for later in history.measures[1:]:
        assert (later["utility_sampled"] == history.measures[0]["utility_sampled"]).all()
    assert len(history.measures) == 4


class Thresholds(Coin):
    """Accepts by the first feature, so that a person and their counterfactual differ."""

    def propensity(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        noise = streams.uniform(x.shape[1])
        return torch.sigmoid(x[..., 0] + 8.0 * (noise - 0.5))


def test_effective_measures_of_ground_truth_and_counterfactuals() -> None:
    data, seeds = load_dataset("synthetic").prepare(), [0, 1]
    learner = Thresholds(0.5)
    history = run(online(learner, data, seeds), 40)
    table = measure_table(history, seeds, cost=0.4)
    end = table[table["time_step"] == 40].set_index("seed")
    accepted, truth, other = (
        torch.stack(part).float()
        for part in (history.accepted, history.ground_truth, history.counterfactually_accepted)
    )
    for k in seeds:
        realised = (accepted[:, k] * (truth[:, k] - 0.4)).mean().item()
        assert end["effective_ground_truth_utility"][k] == pytest.approx(realised, abs=1e-6)
        flipped = (accepted[:, k] != other[:, k]).float().mean().item()
        assert end["effective_cfu"][k] == pytest.approx(flipped, abs=1e-6)
    # By common random numbers as many flip as the propensities differ: no more.
    assert end["effective_cfu"].mean() == pytest.approx(end["cfu"].mean(), abs=0.03)
    # Within a group the other attribute moves everybody the same way.
    s = torch.stack(history.s)
    assert ((accepted >= other) | (s < 0)).all()


class ByGroup(Coin):
    """Accepts by the sensitive attribute alone."""

    def propensity(self, x: Tensor, s: Tensor, streams: SeedStreams) -> Tensor:
        return torch.sigmoid(s)


def test_a_counterfactual_is_of_the_other_group() -> None:
    data = load_dataset("synthetic").prepare()
    measured = Evaluation(data.test, 0.5, [0]).measure(ByGroup(0.5))
    between = torch.sigmoid(torch.tensor(1.0)) - torch.sigmoid(torch.tensor(-1.0))
    torch.testing.assert_close(measured["cfu"], between.expand(1))
    history = run(online(ByGroup(0.5), data, [0]), 30)
    flipped = torch.stack(history.accepted) != torch.stack(history.counterfactually_accepted)
    assert flipped.float().mean().item() == pytest.approx(between.item(), abs=0.03)


def test_without_counterfactuals_their_measures_are_empty(credit: PreparedData) -> None:
    table = measure_table(run(online(Coin(0.5), credit, [0]), 2), [0], cost=0.5)
    names = ["cfu", "ground_truth_utility", "effective_cfu", "effective_ground_truth_utility"]
    assert table[names].isna().all(axis=None)


def fairall(config: Config, data: PreparedData, seeds: list[int]) -> FairAll:
    return FairAll(
        config.model, Setting(data.schema, config.cost.value, seeds, config.schedule, config.protocol)
    )


@pytest.mark.parametrize("name", ["credit", "synthetic"])
def test_going_on_from_a_saved_state_changes_nothing(name: str, compose_config: ComposeConfig) -> None:
    config = compose_config("preset=quick", f"dataset={name}", "model.elbo_samples=2", "model.kl_samples=3")
    data, seeds = load_dataset(name).prepare(), [0, 1]
    undisturbed = online(fairall(config, data, seeds), data, seeds)
    run(undisturbed, 3)
    buffer = io.BytesIO()
    torch.save(undisturbed.state_dict(), buffer)
    run(undisturbed, 6)

    resumed = online(fairall(config, data, seeds), data, seeds)
    buffer.seek(0)
    resumed.load_state_dict(torch.load(buffer, weights_only=True))
    run(resumed, 6)
    for a, b in zip(undisturbed.history.measures, resumed.history.measures, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=0)
    torch.testing.assert_close(undisturbed.history.accepted, resumed.history.accepted)
    torch.testing.assert_close(
        undisturbed.history.counterfactually_accepted, resumed.history.counterfactually_accepted
    )
