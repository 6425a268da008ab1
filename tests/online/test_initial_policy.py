"""Initial policies: propensities, decisions drawn, logged, or for reasons that the table does not hold."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from fairall.config.compose import typed_config
from fairall.data.features import Feature, Kind, Schema
from fairall.data.table import Logged, Table
from fairall.errors import FairAllError
from fairall.online.initial_policy import FOLDS, DrawnPolicy, hidden_acceptance

N = 4000


def people(n: int, seed: int) -> Table:
    """People whose label is logistic in a score."""
    random = np.random.default_rng(seed)
    score, s = random.normal(size=n), random.choice([-1, 1], n)
    label = (random.random(n) < expit(0.3 + 0.8 * score)).astype(int)
    job = Feature("job", Kind.CATEGORICAL, (0.0, 1.0, 2.0), ("a", "b", "c"))
    x = pd.DataFrame({"score": score, "job": random.integers(3, size=n).astype(float)})
    return Table.fully_labelled(Schema([Feature("score", Kind.REAL), job]), x, s, label)


@pytest.fixture
def table() -> Table:
    """People of whom every third has no label, with decisions that are logged."""
    p, luck = np.random.default_rng(0).random((2, N))
    return replace(people(N, 1), labelled=np.arange(N) % 3 > 0, logged=Logged(luck < p, p))


def policy(name: str, *words: str) -> Any:
    """The policy of a name, further words as after `initial_policy.`."""
    own = (f"initial_policy.{word}" for word in words)
    return typed_config(f"initial_policy={name}", *own).initial_policy.build()


@pytest.mark.parametrize(
    "words",
    [["random"], ["harsh", "score={score: 2, job: -1}", "intercept=-1", "advantaged=0.7"]],
    ids=["random", "logistic"],
)
def test_decisions_follow_propensities_and_people_without_a_label_count_as_rejected(
    words: list[str], table: Table
) -> None:
    own = policy(*words)
    p = expit(-1 + 0.7 * (table.s == 1) + 2 * table.x["score"] - table.x["job"])
    p = p if "harsh" in words else np.full(N, 0.5)
    np.testing.assert_allclose(own.propensity(replace(table, logged=None)), p)
    accepted = own.decide(table)
    assert not accepted[~table.labelled].any()
    assert accepted[table.labelled].mean() == pytest.approx(np.mean(p), abs=0.03)


def test_logged_decisions_and_propensities_are_taken_as_recorded(table: Table) -> None:
    assert table.logged is not None
    accepted, propensity = table.logged.accepted, table.logged.propensity
    for least in (0.01, 0.5):
        logged = policy("logged", f"min_propensity={least}")
        assert (logged.decide(table) == accepted & table.labelled).all()
        expected = np.where(accepted, propensity.clip(min=least), propensity)
        assert (logged.propensity(table) == expected).all()


def hidden(gamma: float | str = "null") -> DrawnPolicy:
    words = "score={score: 1}", "intercept=-0.2", "advantaged=0.4", "random_state=123"
    made: DrawnPolicy = policy("harsh", *words, f"hidden={gamma}")
    return made


@pytest.mark.parametrize("gamma", [1.0, 1.5, 10.0])
def test_odds_ratio_is_exact_and_the_propensity_given_x_stays(gamma: float) -> None:
    table = people(50_000, 0)
    p = hidden(gamma).propensity(table)
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
    of_cell = pd.DataFrame({"accepted": hidden(gamma).decide(table), "p": p}).groupby(
        [pd.qcut(table.x["score"], 40), table.s], observed=True
    )
    sums = of_cell.sum()
    assert (np.abs(sums["accepted"] - sums["p"]) <= 2.5 * of_cell.size() ** 0.5).all()


def test_without_hidden_reasons_decisions_and_what_is_stored_are_as_before() -> None:
    table = people(5000, 2)
    drawn = np.random.RandomState(123).binomial(1, hidden().acceptance(table), len(table)) == 1
    assert (hidden().decide(table) == drawn).all()
    first = hidden(8.0)
    assert (hidden(1.0).propensity(table) == first.propensity(table)).all()
    decided = [one.decide(table).tolist() for one in (first, hidden(8.0), hidden(), first.of_split(1))]
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
        hidden(2.0).decide(replace(people(100, 3), **wrong))
