"""Acceptance ratios and balance, by hand and by simulation."""

import numpy as np
import pandas as pd
import pytest

from fairall.evaluate.judged.models import Models
from fairall.evaluate.judged.validation import acceptance_ratio, balance, worst_balance
from tests.evaluate.simulated import applicants, judged, models_of


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return applicants(2000)


@pytest.fixture(scope="module")
def models(people: pd.DataFrame) -> Models:
    return models_of(people, propensity="p")


def test_the_acceptance_ratio_by_hand(models: Models, people: pd.DataFrame) -> None:
    women = (people["sex"] == "f").to_numpy()
    constant = acceptance_ratio(judged(models, np.where(women, 0.45, 0.6)))
    assert constant[:3] == pytest.approx(
        (0.75, 0.75, 0.75), abs=0.01
    )  # known but for people who did not come
    target = np.where(women, 0.6, 0.8) * people["truth"]
    by_group = target.groupby(women)
    rates, errors = by_group.mean(), by_group.std(ddof=0) / np.sqrt(by_group.size()) / by_group.mean()
    ratio = acceptance_ratio(judged(models, target))
    assert ratio.estimate == pytest.approx(rates.min() / rates.max())
    half = 1.96 * np.hypot(*errors)
    ends = np.log(ratio.estimate) + np.array([-half, half])
    assert np.log([ratio.low, ratio.high]) == pytest.approx(ends, abs=0.05 * half)
    never = acceptance_ratio(judged(models, np.where(women, 0.0, 0.6)))
    assert never[:2] == (0.0, 0.0)
    assert 3 / (0.6 * women.sum()) < never.high < 6 / (0.6 * women.sum())
    nobody = acceptance_ratio(judged(models, np.zeros(2000)))
    assert np.isnan(nobody.estimate)
    assert nobody.why == "nobody is accepted"


def test_right_weights_balance_and_wrong_ones_do_not(people: pd.DataFrame, models: Models) -> None:
    flat = models_of(people.assign(p=people["granted"].mean()), propensity="p")
    right, wrong = (balance(judged(fitted, people["new"])) for fitted in (models, flat))
    assert right is not None
    assert wrong is not None
    for group, members in people.groupby("sex"):
        accepted = members[members["granted"] == 1]
        # By hand: standardised by the deviation in the group.
        means = accepted["score"].mean(), np.average(accepted["score"], weights=1 / accepted["p"])
        before, after = (np.array(means) - members["score"].mean()) / members["score"].std()
        score = right[group]["features"]["score"]
        assert score["before"] == pytest.approx(before, rel=0.01)
        assert score["after"] == pytest.approx(after, abs=0.005)
        assert abs(after) < 0.1 < 0.2 < before
        assert right[group]["accepted_by_expected"] == pytest.approx(len(accepted) / members["p"].sum())
        score = wrong[group]["features"]["score"]
        assert score["after"] == pytest.approx(score["before"])
    assert wrong["f"]["accepted_by_expected"] < 0.9 < 1.1 < wrong["m"]["accepted_by_expected"]
    assert worst_balance(models.log, judged(models, people["new"]).people) == ""
    assert "in score" in worst_balance(flat.log, judged(flat, people["new"]).people)
