"""Swap sets of two policies: by hand, and where nothing is said of them; a simulation has their coverage."""

import numpy as np
import pytest

from fairall.evaluate.analyses.swaps import SETS, SWAPS, measures
from fairall.evaluate.analysis import Shown
from fairall.evaluate.evaluation import Comparison
from tests.evaluate.estimated.test_intervals import agresti_coull
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
    for entry, *counts in zip(values, good, women, strict=True):
        for name, k in zip(("good", "group f"), counts, strict=True):
            assert entry[name][:3] == pytest.approx((k / 100, *agresti_coull(k, 100)), abs=1e-3)
    assert values[2]["margin"].estimate == pytest.approx(margin)
    assert SWAPS.table(Shown({"A": comparison.first})) is None
    (sentence,) = SWAPS.told(comparison.page)
    assert "only B accepts 100 people, of whom 60.0" in sentence
    assert f"if this is {100 * margin:.1f}" in sentence


def test_sets_beside_the_decisions_taken() -> None:
    """Their labels are known whatever the propensities are, and the order of the policies turns the sets."""
    people = applicants(800)
    models = models_of(people, propensity="p")
    both = judged(models, people["new"]), judged(models, None)
    ours, theirs = measures(Comparison(*both), "first"), measures(Comparison(*both[::-1]), "second")
    share = people["new"] * (1 - people["granted"])
    assert ours["people"] == round(share.sum())
    assert ours["good"][:3] == pytest.approx(theirs["good"][:3])
    assert ours["good"].low < np.average(people["chance"], weights=share) < ours["good"].high


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
