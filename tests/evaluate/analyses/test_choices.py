"""Value and gaps by thresholds, and the value by costs."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from fairall.evaluate.analyses.choices import GAPS, costs, thresholds
from fairall.evaluate.estimated.estimates import joint_normal
from fairall.evaluate.evaluation import Evaluation
from tests.evaluate.simulated import COST, applicants, evaluated, judged


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return applicants(2000)


def scored(people: pd.DataFrame, score: Any, **keys: Any) -> Evaluation:
    return evaluated(people, propensity="p", score=np.asarray(score), **keys)


def test_thresholds_are_policies_of_the_score_with_a_wider_interval(people: pd.DataFrame) -> None:
    score = expit(people["score"] + 0.5 * (people["sex"] == "m")).to_numpy()
    evaluation = scored(people, score)
    rows = {(row["threshold"], row["measure"]): row["value"] for row in thresholds(evaluation)}
    levels = list(dict.fromkeys(level for level, _ in rows))
    assert levels == pytest.approx(np.quantile(score, np.linspace(0.05, 0.95, 19)))
    for level in levels[::6]:
        policy = judged(evaluation.models, score >= level)
        assert rows[level, "acceptance"] == policy.target.mean()
        # All thresholds together, by Bonferroni's inequality.
        for name, alone, wider in (
            ("value", policy.values["dr"], joint_normal(19) / 1.96),
            *((name, policy.fairness[name]["dr"], None) for name in GAPS),
        ):
            value = rows[level, name]
            assert value.estimate == pytest.approx(alone.estimate)
            assert value.low - 1e-9 <= alone.low < alone.high <= value.high + 1e-9
            assert not wider or value.high - value.low == pytest.approx(
                wider * (alone.high - alone.low), rel=0.03
            )
    assert not [*thresholds(scored(people, np.where(people["score"] > 0, 0.8, 0.2)))]


def test_the_value_is_linear_in_the_cost(people: pd.DataFrame) -> None:
    evaluation = scored(people, people["chance"])
    values = {row["cost"]: row["value"] for row in costs(evaluation)}
    assert list(values) == pytest.approx(np.linspace(0.1, 0.9, 9))
    slopes = np.diff([value.estimate for value in values.values()]) / 0.1
    np.testing.assert_allclose(slopes, -people["new"].mean())
    assert values[COST][:3] == pytest.approx(evaluation.values["dr"][:3])
    of_amounts = scored(
        people.assign(win=0.6, lose=0.4), people["chance"], cost=None, gain="win", loss="lose"
    )
    assert not [*costs(of_amounts)]
