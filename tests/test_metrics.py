import warnings

import numpy as np
import pandas as pd
import pytest
import torch

from fairall import metrics


def test_utility_and_dpu_by_hand() -> None:
    propensity = torch.tensor([[1.0, 0.5, 0.0, 0.5]])
    label, s = torch.tensor([1.0, 0.0, 1.0, 1.0]), torch.tensor([1.0, 1.0, -1.0, -1.0])
    assert metrics.utility(propensity, label, 0.4).item() == pytest.approx((0.6 - 0.2 + 0 + 0.3) / 4)
    assert metrics.dpu(propensity, s).item() == pytest.approx(0.75 - 0.25)
    assert metrics.cfu(propensity, 1 - propensity).item() == pytest.approx((1 + 0 + 1 + 0) / 4)


def test_dpu_without_a_group_is_nan() -> None:
    assert metrics.dpu(torch.ones(1, 3), torch.ones(3)).isnan().all()


def test_dpu_agrees_with_aif360_on_the_same_decisions() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from aif360.datasets import BinaryLabelDataset
        from aif360.metrics import BinaryLabelDatasetMetric

    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"s": generator.choice([-1, 1], 400), "d": generator.integers(0, 2, 400)})
    frame.loc[frame["s"] == 1, "d"] |= generator.integers(0, 2, int((frame["s"] == 1).sum()))
    dataset = BinaryLabelDataset(df=frame.astype(float), label_names=["d"], protected_attribute_names=["s"])
    theirs = BinaryLabelDatasetMetric(
        dataset, unprivileged_groups=[{"s": -1.0}], privileged_groups=[{"s": 1.0}]
    )
    decisions, s = torch.tensor(frame["d"].to_numpy()).float(), torch.tensor(frame["s"].to_numpy()).float()
    assert metrics.dpu(decisions[None], s).item() == pytest.approx(abs(theirs.mean_difference()), abs=1e-6)
    # Accepting is their favourable label, so the acceptance rate is their base rate.
    accepted = (decisions > 0)[None, None]
    pooled = metrics.effective_dpu_pooled(accepted, s[None, None])
    assert pooled.item() == pytest.approx(abs(theirs.mean_difference()), abs=1e-6)
    everybody_good = metrics.utility(decisions[None], torch.ones(400), 0.5).item()
    assert everybody_good == pytest.approx(0.5 * theirs.base_rate(), abs=1e-6)


def test_effective_measures_by_hand() -> None:
    # Two steps, one seed, four applicants.
    accepted = torch.tensor([[[1, 1, 0, 0]], [[1, 0, 1, 1]]], dtype=torch.bool)
    label = torch.tensor([[[1.0, 0.0, 1.0, 1.0]], [[1.0, 1.0, 0.0, 1.0]]])
    s = torch.tensor([[[1.0, 1.0, -1.0, -1.0]], [[1.0, -1.0, -1.0, -1.0]]])
    utility = metrics.effective_utility(accepted, label, 0.5)
    assert utility[:, 0].tolist() == pytest.approx([(0.5 - 0.5) / 4, (0.0 + 0.5 - 0.5 + 0.5) / 8])
    dpu = metrics.effective_dpu(accepted, s)
    assert dpu[:, 0].tolist() == pytest.approx([1.0, (1.0 + 1 / 3) / 2])
    pooled = metrics.effective_dpu_pooled(accepted, s)
    assert pooled[:, 0].tolist() == pytest.approx([1.0, 1.0 - 2 / 5])


def test_acceptance_by_group_by_hand() -> None:
    accepted = torch.tensor([[[1, 1, 0, 0]], [[1, 0, 1, 1]]], dtype=torch.bool)
    s = torch.tensor([[[1.0, 1.0, -1.0, -1.0]], [[-1.0, -1.0, -1.0, -1.0]]])
    advantaged, other = metrics.acceptance_by_group(accepted, s)
    assert advantaged[0].item() == 1.0
    assert other[:, 0].tolist() == [0.0, 0.75]
    assert advantaged[1].isnan().all()


def test_a_step_without_a_group_is_left_out_of_effective_dpu() -> None:
    accepted = torch.tensor([[[1, 0]], [[1, 1]], [[1, 0]]], dtype=torch.bool)
    s = torch.tensor([[[1.0, 1.0]], [[1.0, -1.0]], [[1.0, -1.0]]])
    assert metrics.effective_dpu(accepted, s)[0].isnan().all()
    assert metrics.effective_dpu(accepted, s)[1:, 0].tolist() == pytest.approx([0.0, 0.5])


def test_effective_dpu_has_a_noise_floor_and_the_pooled_one_has_not() -> None:
    generator = torch.Generator().manual_seed(0)
    accepted = torch.rand(2000, 1, 64, generator=generator) < 0.5
    s = 2.0 * (torch.rand(2000, 1, 64, generator=generator) < 0.5) - 1.0
    assert metrics.effective_dpu(accepted, s)[-1].item() == pytest.approx(0.10, abs=0.01)
    assert metrics.effective_dpu_pooled(accepted, s)[-1].item() < 0.01


def test_temporal_measures_use_both_ends_and_n_minus_1() -> None:
    series = torch.tensor([[9.0], [1.0], [2.0], [6.0], [9.0]])
    assert metrics.temporal_mean(series, (1, 3)).item() == pytest.approx(3.0)
    assert metrics.temporal_variation(series, (1, 3)).item() == pytest.approx(np.sqrt((4 + 1 + 9) / 2))


def test_spread_over_seeds() -> None:
    values = np.random.default_rng(1).normal(3.0, 2.0, 100)
    spread = metrics.Spread.over_seeds(values, resamples=20_000)
    assert spread is not None
    assert spread.std is not None
    assert spread.interval is not None
    assert spread.mean == pytest.approx(values.mean())
    assert spread.std == pytest.approx(np.std(values, ddof=1))
    # Bootstrap variance of a mean is the plug-in variance over n; the interval is near its normal one.
    half_width = 1.96 * values.std() / 10
    assert spread.interval == pytest.approx(
        (values.mean() - half_width, values.mean() + half_width), abs=0.03
    )


def test_spread_of_one_seed_or_of_nothing() -> None:
    alone = metrics.Spread.over_seeds(np.array([2.0]), resamples=10)
    assert alone == metrics.Spread(2.0, None, None)
    assert metrics.Spread.over_seeds(np.array([1.0, np.nan]), resamples=10) is None
