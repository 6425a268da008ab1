"""Gain and loss by person: what they are of raw columns, how measures take them, and what is refused."""

import numpy as np
import pytest
import torch

from fairall import metrics
from fairall.config.compose import typed_config
from fairall.data.amounts import Amounts, costs
from fairall.data.dataset import TableDataset, dataset
from fairall.data.features import Feature, Kind, Schema
from fairall.data.people import People
from fairall.errors import FairAllError
from fairall.worlds.measures import regret, utility_per_place
from tests.conftest import LOANS, MEANING, training_of

GAIN, LOSS = "dataset.gain={intercept: 20, credit_amount: 0.1}", "dataset.loss={credit_amount: 0.5, month: 3}"
PARITY = "fairness=demographic_parity"


def amounts_of(*words: str) -> tuple[Amounts, TableDataset]:
    config = typed_config("dataset=credit", *words)
    source = dataset(config.dataset)
    assert isinstance(source, TableDataset)
    amounts = Amounts.of(source.schema, config.amounts)
    assert amounts is not None
    return amounts, source


def test_amounts_of_scaled_people_are_those_of_the_raw_columns() -> None:
    amounts, source = amounts_of(GAIN, LOSS)
    raw, data = source.table().x, source.prepare()
    gain, loss = 20 + 0.1 * raw["credit_amount"], 0.5 * raw["credit_amount"] + 3 * raw["month"]
    for role in ("train", "test"):
        rows, (stake, cost) = getattr(source.splits, role), amounts(getattr(data, role).x)
        np.testing.assert_allclose(stake, (gain + loss)[rows], rtol=1e-5)
        np.testing.assert_allclose(cost, (loss / (gain + loss))[rows], rtol=1e-5)
    assert amounts.unit == pytest.approx((gain + loss)[source.splits.train].mean())


def test_amounts_of_codes_are_those_of_the_codes() -> None:
    amounts, source = amounts_of("dataset.gain={number_of_credits: 2, telephone: 5}", LOSS)
    raw = source.table().x.iloc[source.splits.test]
    gain = amounts.raw(source.prepare().test.x)[:, 0]
    np.testing.assert_allclose(gain, 2 * raw["number_of_credits"] + 5 * raw["telephone"])


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
    label_of, cost_of, stake_of = (values.expand(2, 1, 3) for values in (label, cost, stake))
    effective = [[10 / 3], [(10 - 50) / 6]]
    for measured, expected in (
        (metrics.utility(pi, label, cost, stake=stake), earned.mean(-1)),
        (metrics.ground_truth_utility(pi, label, cost, stake), earned.mean(-1)),
        (metrics.utility_standard_error(pi, label, cost, stake=stake), earned.std(-1) / 3**0.5),
        (metrics.effective_utility(accepted, label_of, cost_of, stake_of), effective),
        (metrics.effective_ground_truth_utility(accepted, label_of, cost_of, stake_of), effective),
        (
            utility_per_place(accepted, label_of, cost_of, torch.full((2, 1), 2.0), stake_of),
            [[5.0], [-10.0]],
        ),
        (
            regret(accepted, label_of, cost_of, ~accepted, stake_of),
            [[(-60 - 10) / 3], [(-60 - 10 + 50) / 6]],
        ),
    ):
        torch.testing.assert_close(measured, torch.as_tensor(expected))


def test_without_amounts_measures_take_the_cost() -> None:
    people = People(torch.zeros(3, 1), torch.ones(3), torch.ones(3))
    assert costs(people, 0.3, None) == {"cost": 0.3, "stake": None}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([GAIN], "dataset.gain=.*given together with dataset.loss"),
        ([LOSS], "dataset.gain=None .*given together with dataset.loss"),
        (["dataset.gain={income: 1}", LOSS], "dataset.gain: 'income' is no feature.*known when one decides"),
        ([GAIN, "dataset.loss={intercept: -9}"], "dataset.loss: the least of the train people is -9"),
        ([GAIN, LOSS, "cost=fixed", "cost.value=0.3"], "cost.value=0.3 .*left out beside dataset.gain, or"),
        ([GAIN, LOSS, "exploration=bounded"], "exploration=bounded is not possible.*one threshold for a"),
        (["dataset.decide_by=cost"], "dataset.decide_by=cost .*left out without dataset.gain"),
        ([GAIN, LOSS, "protocol.scaler=each_file"], "each_file .*training_rows with dataset.gain"),
        ([GAIN, LOSS, "model=plot"], "model=plot has one cost for everybody.*choose .*greedy, ensemble"),
        ([GAIN, LOSS, "model=fairall_I_II"], "model=fairall_I_II has one cost for everybody"),
        ([GAIN, LOSS, PARITY, "fairness.blind=true"], "model=greedy has one cost for everybody"),
        ([GAIN, LOSS, PARITY, "world.capacity.share=0.5"], "it must be none with few places"),
    ],
)
def test_what_has_no_meaning_is_refused(words: list[str], told: str) -> None:
    with pytest.raises(FairAllError, match=told):
        training_of("dataset=credit", "model=greedy", *words)


def test_a_feature_called_as_the_constant_is_refused() -> None:
    schema = Schema([Feature("intercept", Kind.REAL)])
    with pytest.raises(FairAllError, match=r"a feature is called intercept.*rename the column"):
        Amounts.of(schema, {"gain": {"intercept": 1.0}, "loss": {"intercept": 1.0}})


def test_columns_of_a_file_are_amounts() -> None:
    words = [f"dataset.path={LOANS}", *MEANING, "dataset.drop=[id,decision,propensity]"]
    words += ["dataset.gain={income: 0.1}", "dataset.loss={intercept: 90}"]
    training = training_of("dataset=csv", "model=greedy", "initial_policy=random", *words)
    x, schema, amounts = training.data.test.x, training.data.schema, training.learner.setting.amounts
    assert amounts is not None
    i = schema.names.index("income")
    income = x[:, i] * schema.scale[i] + schema.mean[i]
    expected = torch.stack([0.1 * income, torch.full_like(income, 90)], -1)
    np.testing.assert_allclose(amounts.raw(x), expected, rtol=1e-4)
