"""Bounds by decision makers of different strictness, against the truth of simulated logs."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from fairall.evaluate.estimated.officers import OFFICERS, officers, strictness, why_not
from fairall.evaluate.log import DecisionLog
from tests.evaluate import simulated
from tests.evaluate.simulated import evaluated

BY_OFFICERS = {"decision_maker": "officer"}


def cases(n: int, seed: int, *, forgers: bool = False) -> pd.DataFrame:
    """Cases decided by ten officers, who see a hidden variable `u` that the label depends on too.

    Args:
        n: rows.
        seed: of the draw.
        forgers: whether labels depend on who decides, which the bounds do not allow.
    """
    draw = np.random.default_rng(seed)
    people = simulated.applicants(n, seed=seed)[["score", "sex"]]
    hidden, officer = draw.normal(size=n), draw.integers(10, size=n)
    lenient, seen = officer / 2.0 - 1.0, people["score"] + hidden
    chance = expit(0.3 + seen + forgers * 4.0 * (lenient - 1.25))
    decided = simulated.decided(people.assign(officer=officer), expit(lenient + seen), chance, draw)
    return decided.drop(columns="truth").assign(steep=expit(1.0 + 1.5 * people["score"]))


def log_of(people: pd.DataFrame, **keys: Any) -> DecisionLog:
    """The log of `cases`."""
    return simulated.log_of(people, **(BY_OFFICERS | keys))


def test_ends_are_those_of_the_known_population() -> None:
    """Two officers, one feature: the bounds by hand from probabilities, at their sampling errors."""
    draw, n = np.random.default_rng(0), 40_000
    x, z = draw.integers(2, size=(2, n))
    chance = np.array([[0.2, 0.6], [0.5, 0.9]])[z, x]  # of acceptance: the second officer is more lenient
    people = pd.DataFrame({"score": x, "sex": draw.choice(["f", "m"], n), "officer": z})
    ends = officers(log_of(simulated.decided(people, chance, np.array([0.3, 0.7])[x], draw)))
    for value, expected in enumerate([(0.5 * 0.3, 0.5 * 0.3 + 0.5), (0.9 * 0.7, 0.9 * 0.7 + 0.1)]):
        np.testing.assert_allclose(ends[:, x == value].mean(1), expected, atol=0.015)


def test_why_there_are_no_bounds() -> None:
    people = cases(900, 0)
    assert why_not(log_of(people, decision_maker=None)) == "no decision makers are given"
    unknown = people.assign(repaid=people["repaid"].where(people.index % 7 > 0))
    assert why_not(log_of(unknown)) == "some of the accepted have no label"
    few = "the decision makers give fewer than two levels of strictness of 100 rows each"
    for table in (people.assign(officer="officer 1"), people.head(150)):
        assert why_not(log_of(table)) == few


@pytest.mark.parametrize(
    ("sizes", "levels"),
    [
        ((300, 300, 1), (0, 1, 1)),
        ((60, 60, 60, 60), (0, 0, 1, 1)),
        ((100, 100, 100, 100), (0, 1, 2, 3)),
    ],
)
def test_there_are_as_many_levels_as_have_rows_enough(
    sizes: tuple[int, ...], levels: tuple[int, ...]
) -> None:
    """Of decision makers from the strictest to the most lenient."""
    officer = np.repeat(np.arange(len(sizes)), sizes)
    people = cases(len(officer), 0).assign(officer=officer)
    people["granted"] = (people.index % 10 < officer + 3).astype(int)
    people["repaid"] = np.where(people["granted"], people.index % 2, np.nan)
    assert strictness(log_of(people)).tolist() == np.array(levels)[officer].tolist()


def test_decisions_taken_keep_their_observed_value() -> None:
    page = evaluated(cases(3000, 1), None, **BY_OFFICERS)
    limits = page.bounds[OFFICERS]["utility"]
    assert limits[:2] == pytest.approx([page.values["dr"].estimate] * 2)
