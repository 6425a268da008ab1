"""Swap sets of two policies: by hand, by simulation, and where nothing is said of them."""

import numpy as np
import pytest

from fairall.evaluate.analyses.swaps import SETS, SWAPS, measures
from fairall.evaluate.analysis import Shown
from fairall.evaluate.evaluation import Comparison
from tests.evaluate.simulated import COST, applicants, judged, models_of


@pytest.mark.parametrize(("stake", "margin"), [(1.0, 0.1), (2.0, 0.15)])
def test_sets_of_known_labels_by_hand(stake: float, margin: float) -> None:
    """Sets of a hundred people each, with stakes in the third one: V(A) = 50/400, V(B) = (40 + 20·stake)/400.

    B is worth as much as A if the labels of this quarter are worth 400·(V(B) − V(A))/(100·stake) less each.
    """
    place, number = np.divmod(np.arange(400), 100)
    good, women = np.array([80, 50, 60, 20]), np.array([30, 50, 70, 50])
    stakes = np.where(place == 2, stake, 1)
    people = applicants(400).assign(granted=1, p=1.0, gain=stakes * (1 - COST), loss=stakes * COST)
    people["sex"] = np.where(number < women[place], "f", "m")
    people["repaid"] = number[::-1] < good[place]
    models = models_of(people, propensity="p", gain="gain", loss="loss", cost=None, accepts_all=True)
    comparison = Comparison(judged(models, place < 2), judged(models, place % 2 == 0))
    values = [measures(comparison, name) for name in SETS]
    assert [entry["people"] for entry in values] == [100] * 4
    assert [entry["good"].estimate for entry in values] == pytest.approx(good / 100)
    assert [entry["group f"].estimate for entry in values] == pytest.approx(women / 100)
    assert values[2]["margin"].estimate == pytest.approx(margin)
    assert SWAPS.table(Shown({"A": comparison.first})) is None
    (sentence,) = SWAPS.told(comparison.page)
    assert "only B accepts 100 people, of whom 60.0" in sentence
    assert f"if this is {100 * margin:.1f}" in sentence


@pytest.mark.parametrize(("first", "second"), [("new", "steep"), (None, "new"), ("new", None)])
def test_intervals_cover_by_the_labels_of_all_people(first: str | None, second: str | None) -> None:
    """The model of the label knows no score, so that the weights have to be right."""
    truth, covered = applicants(100_000, seed=1), []
    a, b = (truth[name or "p"].to_numpy() for name in (first, second))
    for seed in range(8):
        people = applicants(800, seed=seed + 2)
        models = models_of(people.drop(columns="score"), propensity="p")
        comparison = Comparison(*(judged(models, name and people[name]) for name in (first, second)))
        for name, share in zip(SETS, (a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b)), strict=True):
            expected = {"good": truth["chance"], "group f": truth["sex"] == "f"}
            if name == "second":
                expected["margin"] = (truth["chance"] - COST) * (b - a) / share
            values = measures(comparison, name)
            for key, column in expected.items():
                covered.append(values[key].low < np.average(column, weights=share) < values[key].high)
    assert np.mean(covered) > 0.88


def test_sets_without_overlap_or_people_enough_are_refused() -> None:
    people = applicants()
    models = models_of(people.assign(granted=people["granted"].where(people["score"] < 1, 0)))
    low, few = people["score"] < 0, people["score"] < -2.8
    closed, small, alike = (
        Comparison(judged(models, a), judged(models, b))
        for a, b in ((low, people["score"] > 0.5), (low & ~few, low), (low, 0.5 * low))
    )
    values = measures(closed, "second")
    assert values["people"] > 300
    assert values["good"].why == values["margin"].why == closed.refused_value
    assert not [*SWAPS.told(closed.page)]
    values = measures(small, "second")
    assert values["good"].why == "the set has fewer than 10 people that count"
    assert "group f" not in values
    assert measures(alike, "neither")["good"].why.startswith("no overlap")
