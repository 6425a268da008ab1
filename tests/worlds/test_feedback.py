"""Feedback: people who come back, as their acceptances have changed them."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from fairall.data.fico import Fico
from fairall.data.load import load_dataset
from fairall.data.people import People, take
from fairall.data.prepared import PreparedData
from tests.conftest import ComposeConfig, run_online
from tests.worlds.conftest import Fixed, built, often, online

BOTH = pytest.mark.parametrize("name", ["fico", "synthetic"])


def returning(data: PreparedData, people: int, size: int = 64) -> Any:
    return built("feedback", f"people={people}", data=data, seeds=[3, 4], n=size)


def coming(own: Any) -> People:
    """The applicants of the next time step."""
    people: People = own.arriving(own.order.next, 1)
    return people


@BOTH
def test_everybody_comes_once_per_pass(name: str, data: PreparedData) -> None:
    own = returning(data, 192)
    for _ in range(3):
        numbers = torch.cat([coming(own).person for _ in range(3)], dim=1)  # type: ignore[misc]
        assert torch.equal(numbers.sort().values, torch.arange(192).expand(2, -1))


@BOTH
@pytest.mark.parametrize("n", [10, 500])  # 10 come several times in a time step, and change once
def test_only_the_accepted_change_by_their_label(name: str, n: int, data: PreparedData) -> None:
    rise, fall, least = (13.6, 27.3, 0.0) if name == "fico" else (0.1, 0.2, -np.inf)
    own = returning(data, n)
    for _ in range(40):
        expected = own.people[..., 0].clone()
        people = coming(own)
        accepted = torch.rand(people.s.shape) < 0.5
        own.decided(people, accepted, 1)
        before = take(expected, people.person)  # type: ignore[arg-type]
        moved = (before + torch.where(people.label > 0, rise, -fall)).clamp(least, 100.0)
        for k, i in accepted.nonzero().tolist():
            expected[k, people.person[k, i]] = moved[k, i]
        torch.testing.assert_close(own.people[..., 0], expected, atol=1e-5, rtol=0)
    assert (own.people[..., 0] == 0).any() == (name == "fico")


@pytest.mark.whole
def test_labels_of_returning_people_are_those_of_their_score_by_then(fico: PreparedData) -> None:
    source = load_dataset("fico")
    assert isinstance(source, Fico)
    own = returning(fico, 20_000, 20_000)
    own.people[..., 0] = torch.rand(2, 20_000).double() * 100  # between the scores of the table
    people = coming(own)
    score, s = take(own.people, people.person).unbind(-1)  # type: ignore[arg-type]
    assert torch.equal(s.float(), people.s)
    raw = people.x[..., 0].double() * fico.scaler.scale[0] + fico.scaler.mean[0]
    torch.testing.assert_close(raw, score, rtol=0, atol=1e-3)
    repays = [torch.from_numpy(np.interp(score, source.scores.score, of)) for of in source.scores.repays]
    p = torch.where(s > 0, repays[1], repays[0])
    for group, quarter in itertools.product((-1, 1), range(4)):
        cell = (s == group) & (score // 25 == quarter)
        assert often(people.label[cell], p[cell])


@BOTH
def test_a_run_has_the_mean_scores_of_all_people_after_each_step(
    name: str, data: PreparedData, compose_config: ComposeConfig
) -> None:
    process = online(Fixed(), compose_config(f"dataset={name}", "world.feedback.people=100"), data, [3, 4])
    group_score = run_online(process, 12).steps.read()["group_score"]
    state = process.world.parts["feedback"].people  # type: ignore[attr-defined]
    score = state[..., 0] / (100 if name == "fico" else 1)
    expected = [
        [own[s == group].mean() for group in (-1, 1)] for own, s in zip(score, state[..., 1], strict=True)
    ]
    torch.testing.assert_close(group_score[-1], torch.tensor(expected).double())
    assert len(group_score) == 12
    assert not torch.equal(group_score[0], group_score[-1])
