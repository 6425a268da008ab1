"""Feedback: people who come back, as their acceptances have changed them."""

import pytest
import torch
from torch import Tensor

from fairall.data.fico import CreditScores, Fico
from fairall.data.load import load_dataset
from fairall.data.people import People
from fairall.data.prepared import PreparedData
from fairall.errors import FairAllError
from fairall.worlds.feedback import Feedback, FeedbackConfig
from tests.conftest import ComposeConfig, run_online
from tests.worlds.conftest import Fixed, close, online, setting_of

BOTH = pytest.mark.parametrize("name", ["fico", "synthetic"])
SEEDS = [3, 4]


def returning(data: PreparedData, people: int, size: int = 64, seeds: list[int] = SEEDS) -> Feedback:
    return Feedback(FeedbackConfig(people=people), setting_of(data, seeds, size))


def coming(own: Feedback) -> People:
    """The applicants of the next time step."""
    return own.arriving(own.order.next, 1)


@pytest.fixture(scope="module")
def scores() -> CreditScores:
    source = load_dataset("fico")
    assert isinstance(source, Fico)
    return source.scores


def score_of(own: Feedback) -> Tensor:
    """Of all people, in the units of `dataset.dynamics`."""
    return own.people[..., 0].clone()


@BOTH
def test_everybody_comes_once_per_pass(name: str, data: PreparedData) -> None:
    stream = returning(data, 192)
    for _ in range(3):
        numbers = torch.cat([coming(stream).person for _ in range(3)], dim=1)  # type: ignore[misc]
        for own in numbers:
            assert own.sort().values.tolist() == list(range(192))


@BOTH
def test_only_the_accepted_change_by_their_label(name: str, data: PreparedData) -> None:
    rise, fall = {"fico": (13.6, 27.3), "synthetic": (0.1, 0.2)}[name]
    stream = returning(data, 500)
    bounded = 0
    for _ in range(40):
        before, people = score_of(stream), coming(stream)
        accepted = torch.rand(people.s.shape) < 0.5
        stream.decided(people, accepted, 1)
        expected = before.clone()
        assert people.person is not None
        for k in range(2):
            for i, number in enumerate(people.person[k].tolist()):
                if accepted[k, i]:
                    value = before[k, number].item() + (rise if people.label[k, i] else -fall)
                    limited = min(max(value, 0.0), 100.0) if name == "fico" else value
                    bounded += limited != value
                    expected[k, number] = limited
        assert torch.equal(score_of(stream), expected)
    assert bounded > 0 or name == "synthetic"


@BOTH
def test_who_comes_twice_in_a_time_step_changes_once_and_who_is_rejected_never(
    name: str, data: PreparedData
) -> None:
    stream = returning(data, 10)
    before, people = score_of(stream), coming(stream)
    stream.decided(people, torch.zeros_like(people.s, dtype=torch.bool), 1)
    assert torch.equal(score_of(stream), before)
    stream.decided(people, torch.ones_like(people.s, dtype=torch.bool), 1)
    by = (score_of(stream) - before).abs()
    assert (by <= (27.3 if name == "fico" else 0.2) + 1e-9).all()
    assert by.max() > 0


@pytest.mark.whole
def test_labels_of_returning_people_are_those_of_their_score_by_then(
    fico: PreparedData, scores: CreditScores
) -> None:
    stream = returning(fico, 64 * 20)
    stream.people[..., 0] = (
        torch.rand(stream.people.shape[:2]).double() * 100
    )  # between the scores of the table
    state = stream.people
    expected, found, n = torch.zeros(2, 4), torch.zeros(2, 4), torch.zeros(2, 4)
    for _ in range(200):
        people = coming(stream)
        assert people.person is not None
        own = torch.stack([state[k, people.person[k]] for k in range(2)])
        assert torch.equal(own[..., 1].float(), people.s)
        raw = people.x[..., 0].double() * fico.scaler.scale[0] + fico.scaler.mean[0]
        torch.testing.assert_close(raw, own[..., 0], rtol=0, atol=1e-3)
        for group in (0, 1):
            table, repays = torch.tensor(scores.score), torch.tensor(scores.repays)[group]
            after = torch.searchsorted(table, own[..., 0].contiguous(), right=True).clamp(max=len(table) - 1)
            (left, right), (at_left, at_right) = ((v[after - 1], v[after]) for v in (table, repays))
            p = at_left + (at_right - at_left) * (own[..., 0] - left) / (right - left)
            for quarter in range(4):
                these = (people.s > 0).long().eq(group) & (own[..., 0] // 25).eq(quarter)
                expected[group, quarter] += p[these].sum()
                found[group, quarter] += people.label[these].sum()
                n[group, quarter] += these.sum()
    share = expected / n
    assert n.min() > 1000
    assert close(found / n, share, (share * (1 - share) / n).sqrt(), 4.0)
    assert (share[1, 1:3] > share[0, 1:3] + 0.01).all()


def test_variables_and_labels_of_synthetic_people_follow_their_talent(synthetic: PreparedData) -> None:
    stream = returning(synthetic, 640)
    stream.people[..., 0] += 100.0
    people = coming(stream)
    assert (people.label == 1).all()
    # LSAT has 4 K, and the pool a standard deviation of LSAT near √(16·1.25 + 3.5²).
    assert (people.x[..., 0] > 40).all()
    assert people.counterfactual_x is not None
    assert people.ground_truth is not None
    assert people.ground_truth.float().mean().item() == pytest.approx(0.5, abs=0.2)


@BOTH
def test_group_scores_are_means_over_all_people(name: str, data: PreparedData) -> None:
    stream = returning(data, 300)
    for _ in range(3):
        people = coming(stream)
        stream.decided(people, torch.ones_like(people.s, dtype=torch.bool), 1)
    raw = score_of(stream) / (100 if name == "fico" else 1)
    s = stream.people[..., 1]
    expected = [[raw[k][s[k] == group].mean().item() for group in (-1, 1)] for k in range(2)]
    assert stream.observed()["group_score"].tolist() == [pytest.approx(own) for own in expected]
    assert set(s.unique().tolist()) == {-1.0, 1.0}


@BOTH
def test_a_run_has_the_scores_after_each_step(
    name: str, data: PreparedData, compose_config: ComposeConfig
) -> None:
    config = compose_config(f"dataset={name}", "world.feedback.people=100")
    process = online(Fixed(), config, data, SEEDS)
    measures = {measure.name: measure for measure in process.world.measures}
    history = run_online(process, 12)
    group_score = history.observed["group_score"].double()
    assert group_score.shape == (12, 2, 2)
    assert torch.equal(group_score[-1], process.world.observed()["group_score"].double())
    assert not torch.equal(group_score[0], group_score[-1])
    values = {
        key: measures[key]({"accepted": history.accepted, "group_score": group_score})
        for key in ("mean_score_advantaged", "mean_score_disadvantaged", "score_gap")
    }
    assert torch.equal(values["mean_score_advantaged"], group_score[..., 1])  # type: ignore[arg-type]
    assert torch.equal(values["mean_score_disadvantaged"], group_score[..., 0])  # type: ignore[arg-type]
    assert torch.equal(values["score_gap"], group_score[..., 1] - group_score[..., 0])  # type: ignore[arg-type]


def test_data_that_know_no_dynamics_are_refused(credit: PreparedData) -> None:
    with pytest.raises(FairAllError, match=r"world.feedback: the data set does not know how people change"):
        Feedback(FeedbackConfig(people=10), setting_of(credit, [0]))
