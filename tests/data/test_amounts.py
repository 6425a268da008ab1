"""Gain and loss by person: what they are of raw columns, and how measures take them."""

import numpy as np
import pandas as pd
import pytest
import torch

from fairall import metrics
from fairall.config.compose import typed_config
from fairall.data.dataset import TableDataset, dataset
from fairall.data.features import Feature, Kind, Schema
from fairall.data.prepared import Amounts
from fairall.errors import FairAllError
from fairall.worlds.measures import regret, utility_per_place
from tests.conftest import LOANS, MEANING

LOANS_OF = [f"dataset.path={LOANS}", *MEANING, "dataset.drop=[id,decision,propensity]"]


@pytest.mark.parametrize(
    ("words", "gain", "loss"),
    [
        (["dataset=credit"], {"intercept": 20, "credit_amount": 0.1}, {"credit_amount": 0.5, "month": 3}),
        (["dataset=credit"], {"number_of_credits": 2, "telephone": 5}, {"credit_amount": 0.5}),
        (["dataset=csv", *LOANS_OF], {"income": 0.1}, {"intercept": 90}),
    ],
)
def test_amounts_of_scaled_people_are_those_of_the_raw_columns(
    words: list[str], gain: dict[str, float], loss: dict[str, float]
) -> None:
    config = typed_config(*words)
    source = dataset(config.dataset)
    assert isinstance(source, TableDataset)
    amounts, raw = Amounts.of(source.schema, {"gain": gain, "loss": loss}), source.table().to_frame()
    assert amounts is not None
    g, loss_of = (raw.assign(intercept=1)[[*of]] @ pd.Series(of) for of in (gain, loss))
    rows, (stake, cost) = source.splits.test, amounts(source.prepare().test.x)
    np.testing.assert_allclose(stake, (g + loss_of).iloc[rows], rtol=1e-5)
    np.testing.assert_allclose(cost, (loss_of / (g + loss_of)).iloc[rows], rtol=1e-5)
    assert amounts.unit == pytest.approx((g + loss_of).iloc[source.splits.train].mean())


def test_somebody_new_without_a_gain_still_has_a_break_even_probability() -> None:
    amounts = Amounts(torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64), unit=3.0)
    stake, cost = amounts(torch.tensor([[-5.0], [1.0]]))
    assert cost[0] < 1.0
    assert cost[0] == pytest.approx(1.0, abs=1e-5)
    assert [float(stake[1]), float(cost[1])] == pytest.approx([3.0, 2 / 3])


def test_measures_are_in_money() -> None:
    gain, loss = torch.tensor([10.0, 20.0, 30.0]), torch.tensor([5.0, 50.0, 10.0])
    stake, cost = gain + loss, loss / (gain + loss)
    label, pi = torch.tensor([1.0, 0.0, 0.0]), torch.tensor([[1.0, 0.5, 0.0], [1.0, 1.0, 1.0]])
    earned = torch.tensor([[10.0, -25.0, 0.0], [10.0, -50.0, -10.0]])
    accepted = torch.tensor([[[True, False, False]], [[True, True, True]]])
    effective = [[10 / 3], [(10 - 50) / 6]]
    for measured, expected in (
        (metrics.utility(pi, label, cost, stake=stake), earned.mean(-1)),
        (metrics.ground_truth_utility(pi, label, cost, stake), earned.mean(-1)),
        (metrics.utility_standard_error(pi, label, cost, stake=stake), earned.std(-1) / 3**0.5),
        (metrics.effective_utility(accepted, label, cost, stake), effective),
        (metrics.effective_ground_truth_utility(accepted, label, cost, stake), effective),
        (
            utility_per_place(accepted, label, cost, torch.full((2, 1), 2.0), stake),
            [[5.0], [-10.0]],
        ),
        (
            regret(accepted, label, cost, ~accepted, stake),
            [[(-60 - 10) / 3], [(-60 - 10 + 50) / 6]],
        ),
    ):
        torch.testing.assert_close(measured, torch.as_tensor(expected))


def test_a_feature_called_as_the_constant_is_refused() -> None:
    schema = Schema([Feature("intercept", Kind.REAL)])
    with pytest.raises(FairAllError, match=r"a feature is called intercept.*rename the column"):
        Amounts.of(schema, {"gain": {"intercept": 1.0}, "loss": {"intercept": 1.0}})
