from pathlib import Path

import numpy as np
from scipy.special import expit

from fairall.data.features import Feature, Kind, Schema
from fairall.data.load import load_dataset
from fairall.data.own_table import estimated_propensity
from tests.conftest import MEANING

N = 4000
LOANS = [
    f"dataset.path={Path(__file__).parent / 'loans.csv'}",
    *MEANING,
    "dataset.decision=decision",
    "dataset.accepted=granted",
]


def test_estimates_recover_the_policy_behind_the_decisions() -> None:
    generator = np.random.default_rng(0)
    schema = Schema([Feature("income", Kind.REAL), Feature("job", Kind.CATEGORICAL, (0.0, 1.0, 2.0))])
    income, job = generator.normal(size=N), generator.integers(3, size=N)
    s = generator.choice([-1, 1], N)
    of_job = np.array([1.5, -1.0, 0.5])  # not monotone in the code
    truth = expit(0.8 * income + 0.6 * s + of_job[job])
    accepted = generator.random(N) < truth
    features = np.column_stack([income, job])
    estimate = estimated_propensity(schema, features, s, accepted, np.arange(N))
    assert np.abs(estimate - truth).mean() < 0.02
    # The point of a propensity: weighted by it, the accepted stand for everybody.
    weighted = (accepted * income / estimate).sum() / (accepted / estimate).sum()
    assert abs(weighted - income.mean()) < 0.05
    assert abs(income[accepted].mean() - income.mean()) > 0.2


def test_estimates_are_learnt_from_training_rows_alone() -> None:
    generator = np.random.default_rng(1)
    schema = Schema([Feature("income", Kind.REAL)])
    features, s = generator.normal(size=(300, 1)), generator.choice([-1, 1], 300)
    accepted, train = generator.random(300) < 0.5, np.arange(0, 300, 2)
    alone = estimated_propensity(schema, features[train], s[train], accepted[train], np.arange(150))
    other = accepted.copy()
    other[1::2] = ~other[1::2]
    got = estimated_propensity(schema, features, s, other, train)
    np.testing.assert_allclose(got[train], alone)


def test_selective_labels_do_not_bias_the_estimate() -> None:
    # Of the people of this table whoever was refused has no label.
    estimated = load_dataset("csv", *LOANS, "dataset.drop=[id,propensity]").table()
    recorded = load_dataset("csv", *LOANS, "dataset.drop=[id]", "dataset.propensity=propensity").table()
    assert estimated.logged is not None
    assert recorded.logged is not None
    assert (estimated.labelled == estimated.logged.accepted).all()
    estimate, record = estimated.logged.propensity, recorded.logged.propensity
    assert abs(estimate.mean() - record.mean()) < 0.03
    assert np.corrcoef(estimate, record)[0, 1] > 0.8
    taken = estimated.logged.accepted
    assert abs((1 / estimate[taken]).mean() - (1 / record[taken]).mean()) < 0.15
