"""Measures by hand, beside those of aif360, and their spread over seeds."""

import numpy as np
import pandas as pd
import pytest
import torch

from fairall import metrics
from fairall.metrics import Spread
from fairall.tables.groups import sides


def test_the_utility_by_weights_is_over_their_sum() -> None:
    propensity, label = torch.tensor([[1.0, 0.5, 0.0, 0.5]]), torch.tensor([1.0, 0.0, 1.0, 1.0])
    found = metrics.utility(propensity, label, 0.4, torch.tensor([2.0, 4.0, 0.0, 2.0])).item()
    assert found == pytest.approx((2 * 0.6 - 4 * 0.2 + 2 * 0.3) / 8)


@pytest.mark.parametrize("n_groups", [2, 3, 5])
def test_gaps_are_the_largest_of_all_pairs(n_groups: int) -> None:
    draw = np.random.default_rng(0)
    for _ in range(20):
        group = np.concatenate([np.arange(n_groups), draw.integers(0, n_groups, 40 - n_groups)])
        p, weight, label = *draw.random((2, 40)), draw.integers(0, 2, 40)
        products = {
            "p": p,
            "one": 1.0,
            "good": weight * label,
            "hit": weight * label * p,
            "taken": weight * p,
        }
        of = pd.DataFrame(products).groupby(group).sum()
        rates = of["p"] / of["one"], of["hit"] / of["good"], of["hit"] / of["taken"]
        s = np.array(sides(n_groups))[group]
        given = [torch.tensor(values).float() for values in (p[None], label, s, weight)]
        found = [
            metrics.dpu(given[0], given[2]),
            metrics.equal_opportunity(*given),
            metrics.predictive_parity(*given),
        ]
        assert [one.item() for one in found] == pytest.approx([of.max() - of.min() for of in rates], abs=1e-5)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_effective_gaps_are_those_of_steps_and_of_all_applicants_so_far(n_groups: int) -> None:
    draw = np.random.default_rng(n_groups)
    accepted, group = draw.integers(0, 2, (9, 4)), draw.integers(0, n_groups, (9, 4))
    group[0], group[1] = 0, [0, 1, 0, 1]  # first one group alone, which has no gap
    rows = pd.DataFrame({"step": np.arange(9).repeat(4), "g": group.ravel(), "accepted": accepted.ravel()})
    counts = rows.groupby(["step", "g"])["accepted"].agg(["sum", "count"]).unstack(fill_value=0)

    def gaps(counts: pd.DataFrame) -> pd.Series:
        rates = counts["sum"] / counts["count"]
        return (rates.max(axis=1) - rates.min(axis=1)).where(rates.notna().sum(axis=1) > 1)

    given = torch.tensor(accepted > 0)[:, None], torch.tensor(np.array(sides(n_groups))[group])[:, None]
    found = metrics.effective_dpu(*given), metrics.effective_dpu_pooled(*given)
    expected = gaps(counts).expanding().mean(), gaps(counts.cumsum())
    for one, own in zip(found, expected, strict=True):
        assert one[:, 0].tolist() == pytest.approx([*own], nan_ok=True)


def test_groups_that_are_absent() -> None:
    accepted, s = torch.tensor([[1.0, 0.0, 1.0, 1.0]]), torch.ones(4)
    *_, advantaged, others = metrics.STANDARD
    for measure, expected in ((metrics.dpu, np.nan), (advantaged.function, 0.75), (others.function, np.nan)):
        assert measure(accepted, s).tolist() == pytest.approx([expected], nan_ok=True)
    assert others.function(accepted, -s).item() == 0.75
    # Nobody accepted in a group, or nobody with label 1: no value.
    of_one = torch.tensor([1.0, 1.0, -1.0, -1.0])
    assert metrics.predictive_parity(of_one[None].relu(), torch.ones(4), of_one).isnan().all()
    assert metrics.equal_opportunity(torch.ones(1, 4), of_one.relu(), of_one).isnan().all()


def test_effective_utility_by_hand() -> None:
    # Two steps, one seed, four applicants.
    accepted = torch.tensor([[[1, 1, 0, 0]], [[1, 0, 1, 1]]], dtype=torch.bool)
    label = torch.tensor([[[1.0, 0.0, 1.0, 1.0]], [[1.0, 1.0, 0.0, 1.0]]])
    assert metrics.effective_utility(accepted, label, 0.5)[:, 0].tolist() == [0.0, 0.5 / 8]


def test_effective_dpu_has_a_noise_floor_and_the_pooled_one_has_not() -> None:
    generator = torch.Generator().manual_seed(0)
    accepted = torch.rand(2000, 1, 64, generator=generator) < 0.5
    s = 2.0 * (torch.rand(2000, 1, 64, generator=generator) < 0.5) - 1.0
    assert metrics.effective_dpu(accepted, s)[-1].item() == pytest.approx(0.10, abs=0.01)
    assert metrics.effective_dpu_pooled(accepted, s)[-1].item() < 0.01


def test_spread_over_seeds() -> None:
    # Mean 2, standard deviation √(5/3); t with 3 degrees of freedom has its 97.5 % quantile at 3.1824.
    values, std = np.array([0.5, 1.5, 2.5, 3.5]), np.sqrt(5 / 3)
    half = 3.182446305 * std / 2
    for bounds, interval in ((metrics.UNBOUNDED, (2.0 - half, 2.0 + half)), ((0.0, 3.0), (0.0, 3.0))):
        found = vars(Spread.over_seeds(values, bounds=bounds))
        assert found == {"mean": 2.0, "std": pytest.approx(std), "interval": pytest.approx(interval)}
    assert Spread.over_seeds(values[2:3]) == Spread(2.5, None, None)
    assert Spread.over_seeds(values * np.nan) is None
