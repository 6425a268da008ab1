"""Drift: the course of time, and who comes then with which labels."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fairall.data.people import People
from fairall.data.prepared import PreparedData
from fairall.errors import FairAllError
from tests.worlds.conftest import built, close

DATA = pytest.mark.parametrize("name", ["credit", "fico", "synthetic"])
# A feature of each data set with its slope.
SLOPES = {"credit": {"credit_amount": 0.5, "age": -0.4}, "fico": {"score": -0.6}, "synthetic": {"LSAT": 0.7}}


def drift(data: PreparedData, *words: str, course: str = "step", seeds: int = 1) -> Any:
    return built("drift", f"course={course}", *words, data=data, seeds=range(seeds))


def weights(data: PreparedData, people: People, slopes: dict[str, float], share: float) -> Tensor:
    """How often people (N,) come at extent 1 of all, from the definition."""
    train_x = data.train.x.double().numpy()
    train_s = data.train.s.numpy()
    x = people.x.double().numpy()
    s = people.s.numpy()

    def tilt(values: np.ndarray) -> np.ndarray:
        columns = [data.schema.names.index(name) for name in slopes]
        scaled = (values - train_x.mean(0)) / train_x.std(0, ddof=1)
        return np.exp(np.clip(scaled, -3, 3)[:, columns] @ np.array([*slopes.values()]))

    weight = np.empty(len(x))
    for group, target in ((1.0, share), (-1.0, 1.0 - share)):
        before = train_s == group
        weight[s == group] = tilt(x[s == group]) / tilt(train_x[before]).mean() * target / before.mean()
    return torch.from_numpy(weight / weight.sum())


def arriving(own: Any) -> Iterator[People]:
    """The applicants of time steps 1, 2, ..., 64 at each."""
    stream = own.setting.data.applicants(64, own.setting.seeds)
    return (own.arriving(stream.next, time_step) for time_step in itertools.count(1))


def stacked(people: list[People], name: str) -> Tensor:
    return torch.stack([getattr(one, name) for one in people])


def test_extents_of_the_courses(credit: PreparedData) -> None:
    courses: dict[str, dict[int, float]] = {
        "linear": {0: 0, 20: 0, 21: 1 / 80, 60: 0.5, 100: 1},
        "step": {0: 0, 19: 0, 20: 1, 21: 1, 100: 1},
        "seasonal": {0: 0, 10: 0, 20: 0, 30: 0.5, 40: 1, 50: 0.5, 60: 0, 80: 1},
    }
    for course, expected in courses.items():
        own = drift(credit, "start=20", "period=40", "label.advantaged=0.1", course=course)
        assert [own.extent(t) for t in expected] == pytest.approx([*expected.values()], abs=1e-12)


@pytest.mark.whole
@DATA
def test_applicants_and_evaluation_people_are_the_training_rows_weighted(
    name: str, data: PreparedData
) -> None:
    slopes = SLOPES[name]
    share = 0.35
    own = drift(data, f"advantaged_share={share}", f"features={slopes}".replace("'", ""), seeds=10)
    blocks = [*itertools.islice(arriving(own), 60)]
    x = stacked(blocks, "x").flatten(0, 2)
    s = stacked(blocks, "s").flatten()
    # Of a generator, the population is a fresh sample of it.
    fresh = data.draw is not None
    population = data.applicants(100_000, [99]).next().replicate(0) if fresh else data.train
    weight = weights(data, population, slopes, share)
    expected_share = weight[population.s > 0].sum().item()
    assert expected_share == pytest.approx(share, abs=0.02)  # the training rows of a generator are a sample
    assert close((s > 0).double().mean(), expected_share, (share * (1 - share) / len(s)) ** 0.5 + 1e-3)
    moved_far = False
    for group in (1.0, -1.0):
        members = population.s == group
        theirs = x[s == group].double()
        of_group = (weight[members] / weight[members].sum()).unsqueeze(1)
        values = population.x[members].double()
        mean = (of_group * values).sum(0)
        spread = (of_group * (values - mean) ** 2).sum(0).sqrt()
        assert close(theirs.mean(0), mean, spread * (1 / len(theirs) + 1e-5) ** 0.5, 4.0)
        moved_far |= not close(theirs.mean(0), values.mean(0), spread / len(theirs) ** 0.5, 10.0)
    assert moved_far

    tested = own.evaluated(data.test, 1)
    people = data.test
    weight = weights(data, people, slopes, share)
    n = len(people)
    assert len(tested) == n
    assert close((tested.s > 0).double().mean(), weight[people.s > 0].sum(), 0.5 / n**0.5, 4.0)
    expected = (weight.unsqueeze(1) * people.x.double()).sum(0)
    assert close(tested.x.double().mean(0), expected, tested.x.double().std(0) / n**0.5)


@DATA
def test_labels_move_for_a_group_and_the_known_probability_with_them(name: str, data: PreparedData) -> None:
    own = drift(data, "label={advantaged: -0.5, disadvantaged: 0.4}", course="linear", seeds=4)
    still = data.applicants(64, range(4))
    at_rest = [still.next() for _ in range(100)]
    moved = [*itertools.islice(arriving(own), 100)]
    assert torch.equal(stacked(at_rest, "x"), stacked(moved, "x"))
    s, before, after = (stacked(*of) for of in ((moved, "s"), (at_rest, "label"), (moved, "label")))
    extent = torch.arange(1, 101)[:, None, None] / 100
    expected = torch.where(s > 0, before * (1 - 0.5 * extent), before + (1 - before) * 0.4 * extent)
    found = torch.stack([own.probability(p, *of) for p, *of in zip(before, s, range(1, 101), strict=True)])
    torch.testing.assert_close(found, expected)
    certain = (expected == 0) | (expected == 1)
    assert torch.equal(after[certain], expected[certain])
    for group in (1.0, -1.0):
        p, label = (of[~certain & (s == group)].double() for of in (expected, after))
        assert close(label.sum(), p.sum(), (p * (1 - p)).sum().sqrt())


def test_the_probability_is_the_share_of_labels_of_the_evaluation_people(fico: PreparedData) -> None:
    own = drift(fico, "label={advantaged: -0.3, disadvantaged: 0.6}")
    people = fico.test
    moved = own.evaluated(people, 5)
    assert torch.equal(moved.x, people.x)
    for group in (1.0, -1.0):
        p = own.probability(people.label, people.s, 5)[people.s == group].double()
        assert close(moved.label[people.s == group].double().sum(), p.sum(), (p * (1 - p)).sum().sqrt())
    assert torch.equal(moved.label, own.evaluated(people, 60).label)


def test_ground_truth_and_counterfactuals_of_a_person_stay_with_them(synthetic: PreparedData) -> None:
    words = "advantaged_share=0.8", "label.advantaged=-1.0", "features={GPA: 0.5}"
    people = next(arriving(drift(synthetic, *words, seeds=2)))
    assert (people.label[people.s > 0] == 0).all()
    assert people.ground_truth is not None
    assert people.counterfactual_x is not None
    # With the other s, LSAT differs by twice its coefficient of S, by the scale of the pool.
    difference = (people.x - people.counterfactual_x)[..., 0] * people.s
    assert difference.std().item() < 1e-4
    assert difference.mean().item() > 0.5
    assert people.ground_truth[people.s > 0].mean() > 0.2


def test_before_the_start_nothing_moves(fico: PreparedData) -> None:
    own = drift(fico, "start=10", "advantaged_share=0.9", "label.advantaged=-1.0")
    stream = arriving(own)
    still = fico.applicants(64, [0])
    for _ in range(9):
        early = next(stream)
        at_rest = still.next()
        assert torch.equal(early.x, at_rest.x)
        assert torch.equal(early.label, at_rest.label)
        assert early.label[early.s > 0].mean() > 0.4
    assert own.evaluated(fico.test, 9) is fico.test
    assert own.evaluated(fico.test, 10) is not fico.test
    late = next(stream)
    assert (late.label[late.s > 0] == 0).all()


def test_impossible_drifts_are_refused(credit: PreparedData) -> None:
    alone = replace(credit, train=credit.train.rows((credit.train.s > 0).nonzero().squeeze(1)))
    for data, word, told in (
        (credit, "features={agee: 0.5}", r"world.drift.features=agee is not possible"),
        (credit, "features={age: 5, credit_amount: 5}", "times as frequent as before, and 100 is the most"),
        (alone, "advantaged_share=0.5", r"world.drift: all training rows are of one group"),
    ):
        with pytest.raises(FairAllError, match=told):
            drift(data, word)


def test_a_drift_after_the_end_has_a_note(credit: PreparedData) -> None:
    for start, noted in ((99, False), (100, True), (300, True)):
        notes = drift(credit, f"start={start}", "label.advantaged=0.1").notes(drawn=True)
        told = [f"nothing drifts before time step {start} (world.drift.start)"] * noted
        assert [note.partition(", and")[0] for note in notes] == told
