"""Feedback: people who come back, as their acceptances have changed them."""

from typing import Any

import numpy as np
import pytest
import torch

from fairall.data.fico import Fico
from fairall.data.load import load_dataset
from fairall.data.people import People, take
from fairall.data.prepared import PreparedData
from fairall.errors import FairAllError
from tests.conftest import ComposeConfig, run_online
from tests.worlds.conftest import Fixed, built, close, online

BOTH = pytest.mark.parametrize("name", ["fico", "synthetic"])


def returning(data: PreparedData, people: int, size: int = 64) -> Any:
    return built("feedback", f"people={people}", data=data, seeds=[3, 4], n=size)


def coming(own: Any) -> People:
    """The applicants of the next time step."""
    people: People = own.arriving(own.order.next, 1)
    return people


@BOTH
def test_everybody_comes_once_per_pass(name: str, data: PreparedData) -> None:
    stream = returning(data, 192)
    for _ in range(3):
        numbers = torch.cat([coming(stream).person for _ in range(3)], dim=1)  # type: ignore[misc]
        assert torch.equal(numbers.sort().values, torch.arange(192).expand(2, -1))


@BOTH
@pytest.mark.parametrize("n", [10, 500])  # 10 come several times in a time step, and change once
def test_only_the_accepted_change_by_their_label(name: str, n: int, data: PreparedData) -> None:
    rise, fall, most = {"fico": (13.6, 27.3, 100.0), "synthetic": (0.1, 0.2, np.inf)}[name]
    stream = returning(data, n)
    bounded = 0
    for _ in range(40):
        before = stream.people[..., 0].clone()
        people = coming(stream)
        accepted = torch.rand(people.s.shape) < 0.5
        stream.decided(people, accepted, 1)
        expected = before.clone()
        for k, i in accepted.nonzero().tolist():
            number = people.person[k, i]
            value = before[k, number].item() + (rise if people.label[k, i] else -fall)
            expected[k, number] = min(max(value, 0.0 if name == "fico" else value), most)
            bounded += expected[k, number].item() != value
        assert torch.equal(stream.people[..., 0], expected)
    assert bounded > 0 or name == "synthetic"


@pytest.mark.whole
def test_labels_of_returning_people_are_those_of_their_score_by_then(fico: PreparedData) -> None:
    source = load_dataset("fico")
    assert isinstance(source, Fico)
    stream = returning(fico, 64 * 20)
    state = stream.people
    state[..., 0] = torch.rand(state.shape[:2]).double() * 100  # between the scores of the table
    seen = []
    for _ in range(200):
        people = coming(stream)
        score, s = take(state, people.person).unbind(-1)  # type: ignore[arg-type]
        assert torch.equal(s.float(), people.s)
        raw = people.x[..., 0].double() * fico.scaler.scale[0] + fico.scaler.mean[0]
        torch.testing.assert_close(raw, score, rtol=0, atol=1e-3)
        repays = [torch.from_numpy(np.interp(score, source.scores.score, of)) for of in source.scores.repays]
        cell = 4 * (s > 0) + score // 25  # group and quarter of the scores
        seen.append(torch.stack([cell, torch.where(s > 0, repays[1], repays[0]), people.label]))
    cell, p, label = torch.stack(seen, dim=1).flatten(1)
    n = cell.long().bincount()
    share, found = (cell.long().bincount(of) / n for of in (p, label))
    assert n.min() > 1000
    assert close(found, share, (share * (1 - share) / n).sqrt(), 4.0)
    assert (share[5:7] > share[1:3] + 0.01).all()


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
def test_a_run_has_the_mean_scores_of_all_people_after_each_step(
    name: str, data: PreparedData, compose_config: ComposeConfig
) -> None:
    stream = returning(data, 300)
    people = coming(stream)
    stream.decided(people, torch.ones_like(people.s, dtype=torch.bool), 1)
    score = stream.people[..., 0] / (100 if name == "fico" else 1)
    s = stream.people[..., 1]
    expected = [[score[k][s[k] == group].mean().item() for group in (-1, 1)] for k in range(2)]
    assert stream.observed()["group_score"].tolist() == [pytest.approx(own) for own in expected]
    config = compose_config(f"dataset={name}", "world.feedback.people=100")
    process = online(Fixed(), config, data, [3, 4])
    group_score = run_online(process, 12).steps.read()["group_score"]
    assert group_score.shape == (12, 2, 2)
    assert torch.equal(group_score[-1], process.world.observed()["group_score"])
    assert not torch.equal(group_score[0], group_score[-1])


def test_data_that_know_no_dynamics_are_refused(credit: PreparedData) -> None:
    with pytest.raises(FairAllError, match=r"world.feedback: the data set does not know how people change"):
        returning(credit, 10)
