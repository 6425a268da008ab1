import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from fairall import metrics
from fairall.metrics import Spread


def test_the_utility_by_weights_is_over_their_sum() -> None:
    propensity, label = torch.tensor([[1.0, 0.5, 0.0, 0.5]]), torch.tensor([1.0, 0.0, 1.0, 1.0])
    found = metrics.utility(propensity, label, 0.4, torch.tensor([2.0, 4.0, 0.0, 2.0])).item()
    assert found == pytest.approx((2 * 0.6 - 4 * 0.2 + 2 * 0.3) / 8)


def test_groups_that_are_absent() -> None:
    accepted = torch.tensor([[[1, 0, 1, 1]], [[1, 1, 0, 0]], [[1, 0, 1, 1]]], dtype=torch.bool)
    s = torch.tensor([[[1.0, 1, 1, 1]], [[1.0, 1, -1, -1]], [[-1.0, -1, -1, -1]]])
    nan, (*_, advantaged, others) = torch.nan, metrics.STANDARD
    for measure, expected in {
        metrics.effective_dpu: [nan, 1.0, 1.0],
        metrics.dpu: [nan, 1.0, nan],
        advantaged.function: [0.75, 1.0, nan],
        others.function: [nan, 0.0, 0.75],
    }.items():
        assert measure(accepted, s)[:, 0].tolist() == pytest.approx(expected, nan_ok=True)
    # Nobody accepted in a group, or nobody with label 1: no value.
    of_one = (s[1] > 0).float()
    assert metrics.predictive_parity(of_one, torch.ones(4), s[1]).isnan().all()
    assert metrics.equal_opportunity(torch.ones(1, 4), of_one, s[1]).isnan().all()


def test_measures_by_group_agree_with_aif360() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from aif360.datasets import BinaryLabelDataset
        from aif360.metrics import ClassificationMetric

    draw = np.random.default_rng(1)
    s, label, weight = (draw.choice(of, 500) for of in ([-1.0, 1.0], [0.0, 1.0], [0.0, 1.0, 2.5]))
    accepted = (draw.random(500) < 0.3 + 0.2 * (s > 0) + 0.3 * label).astype(float)
    frame = pd.DataFrame({"s": s, "label": label, "weight": weight})
    people = BinaryLabelDataset(
        df=frame, label_names=["label"], protected_attribute_names=["s"], instance_weights_name="weight"
    )
    decided = people.copy()
    decided.labels = accepted.reshape(-1, 1)
    theirs = ClassificationMetric(people, decided, [{"s": -1.0}], [{"s": 1.0}])
    ours = [torch.tensor(values) for values in (accepted[None], label, s, weight)]
    precision, other = map(theirs.positive_predictive_value, (True, False))
    opportunity = abs(theirs.equal_opportunity_difference())
    assert metrics.equal_opportunity(*ours).item() == pytest.approx(opportunity)
    assert metrics.predictive_parity(*ours).item() == pytest.approx(abs(precision - other))


def test_effective_measures_by_hand() -> None:
    # Two steps, one seed, four applicants.
    accepted = torch.tensor([[[1, 1, 0, 0]], [[1, 0, 1, 1]]], dtype=torch.bool)
    label = torch.tensor([[[1.0, 0.0, 1.0, 1.0]], [[1.0, 1.0, 0.0, 1.0]]])
    s = torch.tensor([[[1.0, 1.0, -1.0, -1.0]], [[1.0, -1.0, -1.0, -1.0]]])
    for found, expected in (
        (metrics.effective_utility(accepted, label, 0.5), [0.0, (0.0 + 0.5 - 0.5 + 0.5) / 8]),
        (metrics.effective_dpu(accepted, s), [1.0, (1.0 + 1 / 3) / 2]),
        (metrics.effective_dpu_pooled(accepted, s), [1.0, 1.0 - 2 / 5]),
        # One group is accepted whole in turn. As definition D.2 is printed the signed differences cancel.
        (metrics.effective_dpu(accepted[[0, 0]], torch.stack([s[0], -s[0]])), [1.0, 1.0]),
    ):
        assert found[:, 0].tolist() == pytest.approx(expected)


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
