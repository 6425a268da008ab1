from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from fairall.config.compose import typed_config
from fairall.data.features import Feature, Kind, Schema
from fairall.data.table import Logged, Table
from fairall.errors import FairAllError
from fairall.online.initial_policy import LoggedPolicy, LoggedPolicyConfig, LogisticPolicy, RandomPolicy

N = 4000


@pytest.fixture
def table() -> Table:
    generator = np.random.default_rng(0)
    schema = Schema(
        [Feature("income", Kind.REAL), Feature("job", Kind.CATEGORICAL, (0.0, 1.0, 2.0), ("a", "b", "c"))]
    )
    x = pd.DataFrame({"income": generator.normal(size=N), "job": generator.integers(3, size=N).astype(float)})
    s = generator.choice([-1, 1], N)
    return Table.fully_labelled(schema, x, s, generator.integers(2, size=N))


@pytest.fixture
def config() -> LoggedPolicyConfig:
    return typed_config("initial_policy=logged").initial_policy


def test_random_policy_accepts_at_its_rate(table: Table) -> None:
    policy = RandomPolicy(typed_config("initial_policy=random").initial_policy)
    assert (policy.propensity(table) == 0.5).all()
    assert policy.decide(table).mean() == pytest.approx(0.5, abs=0.03)


def test_logistic_policy_is_its_formula(table: Table) -> None:
    config = typed_config(
        "initial_policy=harsh",
        "dataset.initial_policies.score={income: 2}",
        "initial_policy.score={income: 2}",
        "initial_policy.intercept=-1",
        "initial_policy.advantaged=0.7",
    ).initial_policy
    policy = LogisticPolicy(replace(config, score={"income": 2.0, "job": -1.0}))
    expected = expit(-1 + 0.7 * (table.s == 1) + 2 * table.x["income"] - table.x["job"])
    np.testing.assert_allclose(policy.propensity(table), expected)
    assert policy.decide(table).mean() == pytest.approx(expected.mean(), abs=0.03)


def test_people_without_a_label_count_as_rejected(table: Table, config: LoggedPolicyConfig) -> None:
    unlabelled = np.arange(N) % 3 == 0
    logged = Logged(np.ones(N, dtype=bool), np.full(N, 0.5))
    table = replace(table, labelled=~unlabelled, logged=logged)
    for policy in (RandomPolicy(typed_config("initial_policy=random").initial_policy), LoggedPolicy(config)):
        accepted = policy.decide(table)
        assert not accepted[unlabelled].any()
        assert accepted[~unlabelled].any()


def test_logged_decisions_and_propensities_are_taken_as_recorded(
    table: Table, config: LoggedPolicyConfig
) -> None:
    propensity = np.random.default_rng(1).random(N)
    accepted = np.random.default_rng(2).random(N) < propensity
    policy = LoggedPolicy(config)
    table = replace(table, logged=Logged(accepted, propensity))
    assert (policy.decide(table) == accepted).all()
    taken = policy.propensity(table)
    assert (taken[accepted] == np.maximum(propensity, 0.01)[accepted]).all()
    assert LoggedPolicy(replace(config, min_propensity=0.5)).propensity(table)[accepted].min() == 0.5


def test_what_cannot_be_done_is_said(table: Table, config: LoggedPolicyConfig) -> None:
    policy = LoggedPolicy(config)
    with pytest.raises(FairAllError, match="records no decisions"):
        policy.decide(table)
    harsh = typed_config("initial_policy=harsh").initial_policy
    with pytest.raises(FairAllError, match="needs a score, which this data set does not have"):
        LogisticPolicy(replace(harsh, score={})).propensity(table)
    with pytest.raises(FairAllError, match="'age' is no feature; they are income, job"):
        LogisticPolicy(replace(harsh, score={"age": 1.0})).propensity(table)
