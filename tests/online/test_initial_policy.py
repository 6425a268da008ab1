"""Initial policies: their propensities, and the decisions drawn or logged."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from fairall.config.compose import typed_config
from fairall.data.features import Feature, Kind, Schema
from fairall.data.table import Logged, Table

N = 4000


@pytest.fixture
def table() -> Table:
    """People of whom every third has no label, with decisions that are logged."""
    generator = np.random.default_rng(0)
    codes = (0.0, 1.0, 2.0), ("a", "b", "c")
    schema = Schema([Feature("income", Kind.REAL), Feature("job", Kind.CATEGORICAL, *codes)])
    x = pd.DataFrame({"income": generator.normal(size=N), "job": generator.integers(3, size=N).astype(float)})
    s, label, p = generator.choice([-1, 1], N), generator.integers(2, size=N), generator.random(N)
    made = Table.fully_labelled(schema, x, s, label)
    return replace(made, labelled=np.arange(N) % 3 > 0, logged=Logged(generator.random(N) < p, p))


def policy(name: str, *words: str) -> Any:
    """The policy of a name, further words as after `initial_policy.`."""
    own = (f"initial_policy.{word}" for word in words)
    return typed_config(f"initial_policy={name}", *own).initial_policy.build()


@pytest.mark.parametrize(
    "words",
    [["random"], ["harsh", "score={income: 2, job: -1}", "intercept=-1", "advantaged=0.7"]],
    ids=["random", "logistic"],
)
def test_decisions_follow_propensities_and_people_without_a_label_count_as_rejected(
    words: list[str], table: Table
) -> None:
    own = policy(*words)
    p = expit(-1 + 0.7 * (table.s == 1) + 2 * table.x["income"] - table.x["job"])
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
