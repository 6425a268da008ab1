"""Decisions that depend on what the table does not hold: `initial_policy.hidden`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from fairall.config.compose import typed_config
from fairall.data.features import Feature, Kind, Schema
from fairall.data.table import Table
from fairall.errors import FairAllError
from fairall.online.initial_policy import FOLDS, DrawnPolicy, hidden_acceptance
from tests.online.test_initial_policy import policy as policy_of


def people(n: int, seed: int) -> Table:
    """People whose label is logistic in a score."""
    random = np.random.default_rng(seed)
    score, s = random.normal(size=n), random.choice([-1, 1], n)
    label = (random.random(n) < expit(0.3 + 0.8 * score)).astype(int)
    schema = Schema([Feature("score", Kind.REAL)])
    return Table.fully_labelled(schema, pd.DataFrame({"score": score}), s, label)


def policy(gamma: float | str = "null") -> DrawnPolicy:
    words = "score={score: 1}", "intercept=-0.2", "advantaged=0.4", "random_state=123"
    made: DrawnPolicy = policy_of("harsh", *words, f"hidden={gamma}")
    return made


@pytest.mark.parametrize("gamma", [1.0, 1.5, 10.0])
def test_odds_ratio_is_exact_and_the_propensity_given_x_stays(gamma: float) -> None:
    table = people(200_000, 0)
    p = policy(gamma).propensity(table)
    # The label of a person changes the own probability, and that of nobody else of the same fold.
    person = np.arange(len(table)) == 7
    good, bad = (
        hidden_acceptance(p, gamma, replace(table, label=np.where(person, y, table.label))) for y in (1, 0)
    )
    assert logit(good[7]) - logit(bad[7]) == pytest.approx(np.log(gamma), abs=1e-9)
    assert good[7 + FOLDS] == bad[7 + FOLDS]
    if gamma == 1.0:
        np.testing.assert_allclose(good, p, atol=1e-12)
    certain = (p > 0.5).astype(float)
    np.testing.assert_allclose(hidden_acceptance(certain, gamma, table), certain, atol=1e-9)
    of_cell = pd.DataFrame({"accepted": policy(gamma).decide(table), "p": p}).groupby(
        [pd.qcut(table.x["score"], 40), table.s], observed=True
    )
    sums = of_cell.sum()
    assert (np.abs(sums["accepted"] - sums["p"]) <= 2.5 * of_cell.size() ** 0.5).all()


def test_without_hidden_reasons_decisions_and_what_is_stored_are_as_before() -> None:
    table = people(5000, 2)
    drawn = np.random.RandomState(123).binomial(1, policy().acceptance(table), len(table)) == 1
    assert (policy().decide(table) == drawn).all()
    hidden = policy(8.0)
    assert (policy(1.0).propensity(table) == hidden.propensity(table)).all()
    decided = [one.decide(table).tolist() for one in (hidden, policy(8.0), policy(), hidden.of_split(1))]
    assert [decided[0] == one for one in decided] == [True, True, False, False]
    assert "hidden" not in typed_config("dataset=credit").to_plain()["initial_policy"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"labelled": np.arange(100) % 2 == 0}, "would depend on labels, and 50 of 100 people have none"),
        ({"label": np.zeros(100, dtype=int)}, "nearly all people have the same label"),
        ({"label": (np.arange(100) % (2 * FOLDS) == 3).astype(int)}, "nearly all people have the same label"),
    ],
)
def test_what_cannot_be_done_is_said(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(FairAllError, match=told):
        policy(2.0).decide(replace(people(100, 3), **wrong))
