"""Drift: the course of time, and who comes then with which labels."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from fairall.data.people import People
from fairall.data.prepared import PreparedData
from fairall.errors import FairAllError
from tests.worlds.conftest import built, close, often

N = 20_000  # applicants
SHARE = 0.35
# A feature of each data set with its slope.
SLOPES = {"credit": {"credit_amount": 0.5, "age": -0.4}, "fico": {"score": -0.6}, "synthetic": {"LSAT": 0.7}}


def drift(data: PreparedData, *words: str, course: str = "step") -> Any:
    return built("drift", f"course={course}", *words, data=data, n=N)


def without(data: PreparedData) -> People:
    """The applicants without drift."""
    return data.applicants(N, [0]).next().replicate(0)


def arriving(own: Any, time_step: int = 1) -> People:
    people: People = own.arriving(own.setting.data.applicants(N, [0]).next, time_step).replicate(0)
    return people


def weights(train: People, people: People, slope: Tensor, share: float) -> Tensor:
    """How often people (N,) come, from the definition."""
    mean, scale = train.x.mean(0), train.x.std(0)
    tilt, of_train = ((((of.x - mean) / scale).clamp(-3, 3) @ slope).exp() for of in (people, train))
    for group, target in ((1.0, share), (-1.0, 1.0 - share)):
        before = train.s == group
        tilt[people.s == group] *= target / before.float().mean() / of_train[before].mean()
    return tilt


@pytest.mark.whole
@pytest.mark.parametrize("name", SLOPES)
def test_applicants_and_evaluation_people_are_drawn_by_weight(name: str, data: PreparedData) -> None:
    slopes = SLOPES[name]
    own = drift(data, f"advantaged_share={SHARE}", f"features={slopes}".replace("'", ""))
    slope = torch.tensor([slopes.get(feature, 0.0) for feature in data.schema.names])
    now = (data.train.s > 0).float().mean().item()
    half = weights(data.train, data.test, slope / 2, (now + SHARE) / 2)
    torch.testing.assert_close(own.weight(data.test, 0.5), half, rtol=1e-4, atol=0)
    for population, found in ((without(data), arriving(own)), (data.test, own.evaluated(data.test, 1))):
        weight = own.weight(population, 1.0).double().clamp(max=own.largest_weight(1.0))
        values, drawn = (torch.cat([of.x, of.s.unsqueeze(-1)], -1).double() for of in (population, found))
        mean = weight @ values / weight.sum()
        error = (weight @ (values - mean) ** 2 / weight.sum() / len(population)).sqrt()
        assert len(drawn) == len(values)
        assert close(drawn.mean(0), mean, error, 6.0)
        assert not close(drawn.mean(0), values.mean(0), error, 6.0)


def test_extents_of_the_courses(credit: PreparedData) -> None:
    courses: dict[str, dict[int, float]] = {
        "linear": {0: 0, 20: 0, 21: 1 / 80, 60: 0.5, 100: 1},
        "step": {0: 0, 19: 0, 20: 1, 21: 1, 100: 1},
        "seasonal": {0: 0, 10: 0, 20: 0, 30: 0.5, 40: 1, 50: 0.5, 60: 0, 80: 1},
    }
    for course, expected in courses.items():
        own = drift(credit, "start=20", "period=40", "label.advantaged=0.1", course=course)
        assert [own.extent(t) for t in expected] == pytest.approx([*expected.values()], abs=1e-12)


def test_labels_move_for_a_group_and_the_known_probability_with_them(fico: PreparedData) -> None:
    own = drift(fico, "label={advantaged: -0.5, disadvantaged: 0.4}", course="linear")
    s = torch.tensor([1.0, -1.0])
    found = torch.stack([own.probability(torch.full((2,), p), s, 50) for p in (0.0, 1.0, 0.4)])
    torch.testing.assert_close(found, torch.tensor([[0.0, 0.2], [0.75, 1.0], [0.3, 0.52]]))
    for before, after in ((without(fico), arriving(own, 50)), (fico.test, own.evaluated(fico.test, 50))):
        assert torch.equal(after.x, before.x)
        p = own.probability(before.label, before.s, 50).double()
        for value in p.unique():
            assert often(after.label[p == value], value)


def test_ground_truth_and_counterfactuals_of_a_person_stay_with_them(synthetic: PreparedData) -> None:
    words = "advantaged_share=0.8", "label.advantaged=-1.0", "features={GPA: 0.5}"
    people = arriving(drift(synthetic, *words))
    assert (people.label[people.s > 0] == 0).all()
    # With the other s, LSAT differs by twice its coefficient of S, by the scale of the pool.
    difference = (people.x - people.counterfactual_x)[:, 0] * people.s
    assert difference.std() < 1e-4 < 0.5 < difference.mean()
    assert people.ground_truth[people.s > 0].mean() > 0.2


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("features={age: 5, credit_amount: 5}", "times as frequent as before, and 100 is the most"),
        ("label.advantaged=0.5", r"world.drift: all training rows are of one group"),
    ],
)
def test_impossible_drifts_are_refused(word: str, told: str, credit: PreparedData) -> None:
    alone = replace(credit, train=credit.train.rows((credit.train.s > 0).nonzero().squeeze(1)))
    with pytest.raises(FairAllError, match=told):
        drift(alone if "one group" in told else credit, word)


@pytest.mark.parametrize("start", [99, 100])
def test_a_drift_after_the_end_has_a_note(start: int, credit: PreparedData) -> None:
    notes = drift(credit, f"start={start}", "label.advantaged=0.1").notes(drawn=True)
    told = f"nothing drifts before time step {start} (world.drift.start), and the run ends at 100"
    assert notes == [told] * (start == 100)
