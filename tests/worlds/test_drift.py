"""Drift: the course of time, and who comes then with which labels."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fairall.config.checks import check_values
from fairall.data.people import People
from fairall.data.prepared import PreparedData
from fairall.errors import FairAllError
from fairall.worlds.drift import Course, Drift, DriftConfig, LabelDriftConfig
from tests.worlds.conftest import close, setting_of, share_error

DATA = pytest.mark.parametrize("name", ["credit", "fico", "synthetic"])
# A feature of each data set with its slope.
SLOPES = {"credit": {"credit_amount": 0.5, "age": -0.4}, "fico": {"score": -0.6}, "synthetic": {"LSAT": 0.7}}


def drift(data: PreparedData, seeds: list[int], *, time_steps: int = 100, **values: Any) -> Drift:
    labels = LabelDriftConfig(
        advantaged=values.pop("advantaged", 0.0), disadvantaged=values.pop("disadvantaged", 0.0)
    )
    usual: dict[str, Any] = {
        "course": Course.step,
        "start": 0,
        "period": 50,
        "advantaged_share": None,
        "features": {},
    }
    config = DriftConfig(**(usual | values), label=labels)
    check_values(config, "world.drift")
    return Drift(config, setting_of(data, seeds, 64, time_steps))


def weights(data: PreparedData, people: People, slopes: dict[str, float], share: float) -> np.ndarray:
    """How often people (N,) come at extent 1 in units of before, from the definition."""
    train_x, train_s = data.train.x.double().numpy(), data.train.s.numpy()
    x, s = people.x.double().numpy(), people.s.numpy()

    def tilt(values: np.ndarray) -> np.ndarray:
        columns = [data.schema.names.index(name) for name in slopes]
        scaled = (values - train_x.mean(0)) / train_x.std(0, ddof=1)
        return np.exp(np.clip(scaled, -3, 3)[:, columns] @ np.array([*slopes.values()]))

    weight = np.empty(len(x))
    for group, target in ((1.0, share), (-1.0, 1.0 - share)):
        before = train_s == group
        own = tilt(x[s == group]) / tilt(train_x[before]).mean()
        weight[s == group] = own * target / before.mean()
    return weight


def arriving(own: Drift) -> Iterator[People]:
    """The applicants of time steps 1, 2, ..., 64 at each."""
    stream = own.setting.data.applicants(64, own.setting.seeds)
    return (own.arriving(stream.next, time_step) for time_step in itertools.count(1))


def test_extents_of_the_courses(credit: PreparedData) -> None:
    linear = drift(credit, [0], course=Course.linear, start=20, time_steps=100, advantaged=0.1)
    assert [linear.extent(t) for t in (0, 20, 21, 60, 100)] == pytest.approx([0, 0, 1 / 80, 0.5, 1])
    step = drift(credit, [0], course=Course.step, start=20, advantaged=0.1)
    assert [step.extent(t) for t in (0, 19, 20, 21, 100)] == [0, 0, 1, 1, 1]
    seasonal = drift(credit, [0], course=Course.seasonal, start=20, period=40, advantaged=0.1)
    expected = [0, 0, 0, 0.5, 1, 0.5, 0, 1]
    assert [seasonal.extent(t) for t in (0, 10, 20, 30, 40, 50, 60, 80)] == pytest.approx(expected, abs=1e-12)


@pytest.mark.whole
@DATA
def test_applicants_and_evaluation_people_are_the_training_rows_weighted(
    name: str, data: PreparedData
) -> None:
    slopes, share, seeds = SLOPES[name], 0.35, list(range(10))
    own = drift(data, seeds, advantaged_share=share, features=slopes)
    blocks = list(itertools.islice(arriving(own), 60))
    x = torch.stack([people.x for people in blocks]).flatten(0, 2)
    s = torch.stack([people.s for people in blocks]).flatten()
    # Of a generator, the population is a fresh sample of it.
    population = data.train
    if data.draw is not None:
        fresh = data.applicants(100_000, [99]).next()
        population = People(fresh.x[0], fresh.s[0], fresh.label[0])
    weight = torch.from_numpy(weights(data, population, slopes, share))
    weight = weight / weight.sum()
    expected_share = weight[population.s > 0].sum().item()
    assert expected_share == pytest.approx(share, abs=0.02)  # the training rows of a generator are a sample
    assert close((s > 0).double().mean(), expected_share, share_error(share, len(s)) + 1e-3)
    moved_far = False
    for group in (1.0, -1.0):
        members, theirs = population.s == group, x[s == group].double()
        of_group = (weight[members] / weight[members].sum()).unsqueeze(1)
        values = population.x[members].double()
        mean = (of_group * values).sum(0)
        spread = (of_group * (values - mean) ** 2).sum(0).sqrt()
        assert close(theirs.mean(0), mean, spread * (1 / len(theirs) + 1e-5) ** 0.5, 4.0)
        moved_far |= not close(theirs.mean(0), values.mean(0), spread / len(theirs) ** 0.5, 10.0)
    assert moved_far

    tested, people = own.evaluated(data.test, 1), data.test
    weight = torch.from_numpy(weights(data, people, slopes, share))
    weight = weight / weight.sum()
    n = len(people)
    assert len(tested) == n
    assert (tested.s > 0).double().mean().item() == pytest.approx(
        weight[people.s > 0].sum().item(), abs=4 / n**0.5 * 0.5
    )
    expected = (weight.unsqueeze(1) * people.x.double()).sum(0)
    assert close(tested.x.double().mean(0), expected, tested.x.double().std(0) / n**0.5)


@DATA
def test_labels_move_for_a_group_and_the_known_probability_with_them(name: str, data: PreparedData) -> None:
    seeds = [0, 1, 2, 3]
    own = drift(data, seeds, advantaged=-0.5, disadvantaged=0.4, course=Course.linear)
    still = data.applicants(64, seeds)
    at_rest, moved = [still.next() for _ in range(100)], list(itertools.islice(arriving(own), 100))
    before, after = (torch.stack([one.label for one in blocks[50:]]) for blocks in (at_rest, moved))
    x, of_drift = (torch.stack([one.x for one in blocks]) for blocks in (at_rest, moved))
    assert torch.equal(x, of_drift)
    s = torch.stack([one.s for one in moved[50:]])
    assert (after <= before)[s > 0].all()
    assert (after >= before)[s < 0].all()
    extent = torch.tensor([own.extent(t) for t in range(51, 101)])[:, None, None].expand_as(s)
    for group, label, rate in ((1.0, 1.0, 0.5), (-1.0, 0.0, 0.4)):
        of = (s == group) & (before == label)
        chance = (extent * rate)[of].double()
        error = (chance * (1 - chance)).sum().sqrt()
        assert close((after != before)[of].double().sum(), chance.sum(), error)
    for time_step in (51, 75, 100):
        p = own.probability(before[time_step - 51], s[time_step - 51], time_step)
        expected = torch.where(
            s[time_step - 51] > 0,
            before[time_step - 51] * (1 - 0.5 * time_step / 100),
            before[time_step - 51] + (1 - before[time_step - 51]) * 0.4 * time_step / 100,
        )
        torch.testing.assert_close(p, expected)


def test_the_probability_is_the_share_of_labels_of_the_evaluation_people(fico: PreparedData) -> None:
    own, people = drift(fico, [0], advantaged=-0.3, disadvantaged=0.6), fico.test
    moved = own.evaluated(people, 5)
    assert torch.equal(moved.x, people.x)
    for group in (1.0, -1.0):
        p = own.probability(people.label, people.s, 5)[people.s == group].double()
        error = (p * (1 - p)).sum().sqrt()
        assert close(moved.label[people.s == group].double().sum(), p.sum(), error)
    assert torch.equal(own.evaluated(people, 5).label, own.evaluated(people, 60).label)


def test_ground_truth_and_counterfactuals_of_a_person_stay_with_them(synthetic: PreparedData) -> None:
    own = drift(synthetic, [0, 1], advantaged_share=0.8, advantaged=-1.0, features={"GPA": 0.5})
    people = next(arriving(own))
    assert (people.label[people.s > 0] == 0).all()
    assert people.ground_truth is not None
    assert people.counterfactual_x is not None
    # With the other s, LSAT differs by twice its coefficient of S, by the scale of the pool.
    difference = (people.x - people.counterfactual_x)[..., 0] * people.s
    assert difference.std().item() < 1e-4
    assert difference.mean().item() > 0.5
    assert people.ground_truth[people.s > 0].mean() > 0.2


def test_before_the_start_nothing_moves(fico: PreparedData) -> None:
    own = drift(fico, [0], start=10, advantaged_share=0.9, advantaged=-1.0)
    stream = arriving(own)
    still = fico.applicants(64, [0])
    for _ in range(9):
        early, at_rest = next(stream), still.next()
        assert torch.equal(early.x, at_rest.x)
        assert torch.equal(early.label, at_rest.label)
        assert early.label[early.s > 0].mean() > 0.4
    assert own.evaluated(fico.test, 9) is fico.test
    assert own.evaluated(fico.test, 10) is not fico.test
    late = next(stream)
    assert (late.label[late.s > 0] == 0).all()


def test_impossible_drifts_are_refused(credit: PreparedData) -> None:
    with pytest.raises(FairAllError, match=r"world.drift.features=agee is not possible"):
        drift(credit, [0], features={"agee": 0.5})
    with pytest.raises(FairAllError, match="times as frequent as before, and 100 is the most"):
        drift(credit, [0], features={"age": 5.0, "credit_amount": 5.0})
    alone = credit.train.rows((credit.train.s > 0).nonzero().squeeze(1))
    with pytest.raises(FairAllError, match=r"world.drift: all training rows are of one group"):
        drift(replace(credit, train=alone), [0], advantaged_share=0.5)


def test_a_drift_after_the_end_has_a_note(credit: PreparedData) -> None:
    assert drift(credit, [0], start=99, advantaged=0.1).notes(drawn=True) == []
    for start in (100, 300):
        (note,) = drift(credit, [0], start=start, advantaged=0.1).notes(drawn=True)
        assert f"before time step {start} (world.drift.start)" in note
    assert math.isclose(drift(credit, [0], start=100, advantaged=0.1).extent(100), 1.0)
