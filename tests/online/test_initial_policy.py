from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from fairall.config.compose import typed_config
from fairall.data.features import Feature, Kind, Schema
from fairall.data.table import Logged, Table
from fairall.errors import FairAllError

N = 4000


@pytest.fixture
def table() -> Table:
    generator = np.random.default_rng(0)
    codes = (0.0, 1.0, 2.0), ("a", "b", "c")
    schema = Schema([Feature("income", Kind.REAL), Feature("job", Kind.CATEGORICAL, *codes)])
    x = pd.DataFrame({"income": generator.normal(size=N), "job": generator.integers(3, size=N).astype(float)})
    s = generator.choice([-1, 1], N)
    return Table.fully_labelled(schema, x, s, generator.integers(2, size=N))


def policy(name: str, *words: str) -> Any:
    """The policy of a name, `words` as after `initial_policy.`."""
    return typed_config(
        f"initial_policy={name}", *(f"initial_policy.{word}" for word in words)
    ).initial_policy.build()


def test_random_policy_accepts_at_its_rate(table: Table) -> None:
    assert (policy("random").propensity(table) == 0.5).all()
    assert policy("random").decide(table).mean() == pytest.approx(0.5, abs=0.03)


def test_logistic_policy_is_its_formula(table: Table) -> None:
    harsh = policy("harsh", "score={income: 2, job: -1}", "intercept=-1", "advantaged=0.7")
    expected = expit(-1 + 0.7 * (table.s == 1) + 2 * table.x["income"] - table.x["job"])
    np.testing.assert_allclose(harsh.propensity(table), expected)
    assert harsh.decide(table).mean() == pytest.approx(expected.mean(), abs=0.03)


def test_people_without_a_label_count_as_rejected(table: Table) -> None:
    unlabelled = np.arange(N) % 3 == 0
    table = replace(table, labelled=~unlabelled, logged=Logged(np.ones(N, dtype=bool), np.full(N, 0.5)))
    for name in ("random", "logged"):
        accepted = policy(name).decide(table)
        assert not accepted[unlabelled].any()
        assert accepted[~unlabelled].any()


def test_logged_decisions_and_propensities_are_taken_as_recorded(table: Table) -> None:
    propensity, luck = np.random.default_rng(1).random((2, N))
    accepted = luck < propensity
    table = replace(table, logged=Logged(accepted, propensity))
    for least in (0.01, 0.5):
        logged = policy("logged", f"min_propensity={least}")
        assert (logged.decide(table) == accepted).all()
        assert (logged.propensity(table)[accepted] == propensity[accepted].clip(min=least)).all()
    assert (policy("logged").propensity(table) == logged.propensity(table))[propensity > 0.5].all()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["logged"], "records no decisions"),
        (["harsh", "score={}"], "needs a score, which this data set does not have"),
        (["harsh", "score={age: 1}"], "score=age is not possible: it must be income or job"),
    ],
)
def test_what_cannot_be_done_is_said(words: list[str], told: str, table: Table) -> None:
    with pytest.raises(FairAllError, match=told):
        policy(*words).decide(table)
