from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from fairall.data.features import Feature, Kind, Schema
from fairall.data.load import load_dataset
from fairall.data.own_table import estimated_propensity
from fairall.data.table import Table
from tests.conftest import MEANING

N = 4000
LOANS = [
    f"dataset.path={Path(__file__).parent / 'loans.csv'}",
    *MEANING,
    "dataset.decision=decision",
    "dataset.accepted=granted",
]


def applicants() -> tuple[Table, np.ndarray, np.ndarray]:
    """People whose job decides in an order that is not that of its codes, decisions, and their chances."""
    generator = np.random.default_rng(0)
    schema = Schema([Feature("income", Kind.REAL), Feature("job", Kind.CATEGORICAL, (0.0, 1.0, 2.0))])
    x = pd.DataFrame({"income": generator.normal(size=N), "job": generator.integers(3, size=N)})
    s = generator.choice([-1, 1], N)
    chance = expit(0.8 * x["income"] + 0.6 * s + np.array([1.5, -1.0, 0.5])[x["job"]]).to_numpy()
    return Table.fully_labelled(schema, x, s, np.zeros(N)), generator.random(N) < chance, chance


def test_estimates_recover_the_policy_behind_the_decisions() -> None:
    table, accepted, truth = applicants()
    estimate, income = estimated_propensity(table, accepted, np.arange(N)), table.x["income"]
    assert np.abs(estimate - truth).mean() < 0.02
    # The point of a propensity: weighted by it, the accepted stand for everybody.
    weighted = (accepted * income / estimate).sum() / (accepted / estimate).sum()
    assert abs(weighted - income.mean()) < 0.05
    assert abs(income[accepted].mean() - income.mean()) > 0.2


def test_estimates_are_learnt_from_training_rows_alone() -> None:
    table, accepted, _ = applicants()
    train = np.arange(0, N, 2)
    alone = estimated_propensity(table.rows(train), accepted[train], np.arange(len(train)))
    accepted[1::2] = ~accepted[1::2]
    np.testing.assert_allclose(estimated_propensity(table, accepted, train)[train], alone)


def test_selective_labels_do_not_bias_the_estimate() -> None:
    # Of the people of this table whoever was refused has no label.
    words = (["dataset.drop=[id,propensity]"], ["dataset.drop=[id]", "dataset.propensity=propensity"])
    logs = [load_dataset("csv", *LOANS, *some).table().logged for some in words]
    weights, means = [], []
    for log in logs:
        assert log is not None
        weights.append(log.propensity)
        means.append((1 / log.propensity[log.accepted]).mean())
    assert abs(weights[0].mean() - weights[1].mean()) < 0.03
    assert np.corrcoef(np.stack(weights))[0, 1] > 0.8
    assert abs(means[0] - means[1]) < 0.15
