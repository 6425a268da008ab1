"""Reasons and referrals of people of any table."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from fairall.decide.reasons import contributions, typical
from fairall.decide.refer import Refer
from fairall.errors import FairAllError
from fairall.policy import Policy
from tests.decide.additive import READER, additive


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    return additive(tmp_path)


def test_the_same_person_has_the_same_contributions_in_any_table(policy: Policy) -> None:
    policy.learner.weight = torch.tensor([0.1, 0.0, 0.05, 0.1])
    x = torch.tensor(np.random.default_rng(0).normal(size=(50, 3)), dtype=torch.float32)
    whole, s = contributions(policy, x, torch.ones(50), "mean"), torch.ones(50)
    # Linear in a feature, as long as the score is between 0 and 1; that of debt is 0.
    slope, _ = np.polyfit(x[:, 0], whole[:, 0], 1)
    assert slope == pytest.approx(0.1, abs=1e-3)
    np.testing.assert_allclose(whole[:, 1], 0, atol=1e-6)
    np.testing.assert_array_equal(contributions(policy, x.flip(0), s, "mean"), whole[::-1])
    np.testing.assert_array_equal(contributions(policy, x[7:8], s[:1], "mean"), whole[7:8])
    assert contributions(policy, x[:0], s[:0], "mean").shape == (0, 3)


def test_equal_people_are_referred_by_lot_and_nearer_margins_first(policy: Policy) -> None:
    x, s, equal = torch.zeros(200, 3), torch.ones(200), np.full(200, 0.8)
    referred = Refer(60).people(policy, x, s, equal)
    assert referred.sum() == 60
    assert 3 < referred[:60].sum() < 33  # not by position: some 18, standard deviation 3
    x[::2, 0] = torch.linspace(-3, 1, 100)  # the margin is another one, farther from 0 but for a few
    assert Refer(0.5).people(policy, x, s, equal)[::2].sum() < 40
    assert Refer(band=(0.8, 0.8)).people(policy, x, s, equal).all()
    near = np.where(np.arange(200) < 3, 0.7, equal)
    assert Refer(3).people(policy, x, s, near)[:3].all(), "probabilities come before margins"
    for most in (0, 1.5, None):
        with pytest.raises(FairAllError, match=r"^refer=.* is not possible"):
            Refer(most).people(policy, x, s, equal)


def test_people_to_compare_with_are_as_those_of_training() -> None:
    income = replace(READER.features[0], mean=100.0, scale=10.0, lowest=90.0, highest=130.0)
    reader = replace(READER, features=(income, *READER.features[1:]))
    rows = typical(reader, 500, np.random.default_rng(0))
    x, debt, home, s = pd.DataFrame(rows.numpy()).items()
    assert x[1].quantile([0.0, 0.5, 0.9]).tolist() == pytest.approx([-1, 0, 1.28], abs=0.15)  # scaled
    assert set(debt[1]) == {0, 1, 2, 3}
    for column, values in ((home[1], [1, 2, 3]), (s[1], [-1, 1])):
        assert column.value_counts(normalize=True)[values].tolist() == pytest.approx(
            [1 / len(values)] * len(values), abs=0.1
        )
