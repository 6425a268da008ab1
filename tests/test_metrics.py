import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import precision_score, recall_score

from fairall import metrics


def test_utility_dpu_and_sizes_by_hand() -> None:
    propensity = torch.tensor([[1.0, 0.5, 0.0, 0.5]])
    label, s = torch.tensor([1.0, 0.0, 1.0, 1.0]), torch.tensor([1.0, 1.0, -1.0, -1.0])
    assert metrics.utility(propensity, label, 0.4).item() == pytest.approx((0.6 - 0.2 + 0 + 0.3) / 4)
    assert metrics.dpu(propensity, s).item() == pytest.approx(0.75 - 0.25)
    assert metrics.cfu(propensity, 1 - propensity).item() == pytest.approx((1 + 0 + 1 + 0) / 4)
    weight = torch.tensor([2.0, 4.0, 0.0, 2.0])
    weighted = metrics.utility(propensity, label, 0.4, weight).item()
    assert weighted == pytest.approx((2 * 0.6 - 4 * 0.2 + 2 * 0.3) / 8)


def test_groups_that_are_absent() -> None:
    assert metrics.dpu(torch.ones(1, 3), torch.ones(3)).isnan().all()
    accepted = torch.tensor([[[1, 0]], [[1, 1]], [[1, 0]]], dtype=torch.bool)
    s = torch.tensor([[[1.0, 1.0]], [[1.0, -1.0]], [[1.0, -1.0]]])
    assert metrics.effective_dpu(accepted, s)[0].isnan().all()
    assert metrics.effective_dpu(accepted, s)[1:, 0].tolist() == pytest.approx([0.0, 0.5])
    accepted = torch.tensor([[[1, 1, 0, 0]], [[1, 0, 1, 1]]], dtype=torch.bool)
    s = torch.tensor([[[1.0, 1.0, -1.0, -1.0]], [[-1.0, -1.0, -1.0, -1.0]]])
    advantaged = metrics.acceptance_rate_advantaged(accepted, s)
    assert advantaged[0].item() == 1.0
    assert metrics.acceptance_rate_disadvantaged(accepted, s)[:, 0].tolist() == [0.0, 0.75]
    assert advantaged[1].isnan().all()


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


@pytest.mark.parametrize("weighted", [False, True])
def test_measures_by_group_agree_with_aif360_and_sklearn(weighted: bool) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from aif360.datasets import BinaryLabelDataset
        from aif360.metrics import ClassificationMetric

    generator = np.random.default_rng(1)
    s, label = generator.choice([-1.0, 1.0], 500), generator.integers(0, 2, 500).astype(float)
    accepted = (generator.random(500) < 0.3 + 0.2 * (s > 0) + 0.3 * label).astype(float)
    weight = generator.choice([0.0, 1.0, 2.5], 500) if weighted else np.ones(500)
    frame = pd.DataFrame({"s": s, "label": label, "weight": weight})
    people = BinaryLabelDataset(
        df=frame, label_names=["label"], protected_attribute_names=["s"], instance_weights_name="weight"
    )
    decided = people.copy()
    decided.labels = accepted.reshape(-1, 1)
    theirs = ClassificationMetric(people, decided, [{"s": -1.0}], [{"s": 1.0}])

    ours = {name: torch.tensor(values) for name, values in (("label", label), ("s", s))}
    ours["propensity"] = torch.tensor(accepted)[None]
    known = torch.tensor(weight) if weighted else None
    opportunity = metrics.equal_opportunity(**ours, weight=known).item()
    assert opportunity == pytest.approx(abs(theirs.equal_opportunity_difference()))
    precision = [theirs.positive_predictive_value(privileged) for privileged in (True, False)]
    parity = metrics.predictive_parity(**ours, weight=known).item()
    assert parity == pytest.approx(abs(precision[0] - precision[1]))
    if not weighted:
        assert metrics.acceptance(ours["propensity"]).item() == pytest.approx(theirs.selection_rate())

    # fairlearn's definitions: differences between groups of recall and of precision.
    for score, value in ((recall_score, opportunity), (precision_score, parity)):
        advantaged, others = (
            score(label[group], accepted[group], sample_weight=weight[group]) for group in (s > 0, s < 0)
        )
        assert value == pytest.approx(abs(advantaged - others))


def test_measures_by_group_of_probabilities_are_those_of_many_decisions() -> None:
    generator = torch.Generator().manual_seed(5)
    label, s = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 1.0]), torch.tensor([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    propensity = torch.tensor([[0.9, 0.6, 0.4, 0.3, 0.5, 0.1]])
    copies = 20_000
    many, labels, groups = propensity.repeat(1, copies), label.repeat(copies), s.repeat(copies)
    decisions = (torch.rand(many.shape, generator=generator) < many).float()
    for measure in (metrics.equal_opportunity, metrics.predictive_parity):
        drawn = measure(decisions, labels, groups).item()
        assert measure(propensity, label, s).item() == pytest.approx(drawn, abs=0.01)


def test_labels_that_are_unknown_do_not_count() -> None:
    propensity, s = torch.tensor([[0.9, 0.6, 0.4, 0.3]]), torch.tensor([1.0, 1.0, -1.0, -1.0])
    weight = torch.tensor([1.0, 0.0, 1.0, 2.0])
    for measure in (metrics.equal_opportunity, metrics.predictive_parity):
        values = {
            measure(propensity, torch.tensor([1.0, unknown, 1.0, 0.0]), s, weight).item()
            for unknown in (0.0, 1.0)
        }
        assert len(values) == 1
    # Nobody accepted in a group, or nobody with label 1: no value.
    assert metrics.predictive_parity(propensity * (s > 0), torch.ones(4), s).isnan().all()
    assert metrics.equal_opportunity(propensity, (s > 0).float(), s).isnan().all()


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


def test_effective_dpu_has_a_noise_floor_and_the_pooled_one_has_not() -> None:
    generator = torch.Generator().manual_seed(0)
    accepted = torch.rand(2000, 1, 64, generator=generator) < 0.5
    s = 2.0 * (torch.rand(2000, 1, 64, generator=generator) < 0.5) - 1.0
    assert metrics.effective_dpu(accepted, s)[-1].item() == pytest.approx(0.10, abs=0.01)
    assert metrics.effective_dpu_pooled(accepted, s)[-1].item() < 0.01


def test_effective_dpu_is_of_absolute_differences_where_definition_d2_prints_signed_ones() -> None:
    # One group is accepted whole in turn, at both steps: as printed 0, by the authors' code and here 1.
    accepted, s = np.array([[1, 1, 0, 0], [0, 0, 1, 1]]), np.array([[1.0, 1.0, -1.0, -1.0]] * 2)
    steps = list(zip(accepted, s, strict=True))
    signed = [d[own > 0].mean() - d[own < 0].mean() for d, own in steps]
    assert np.mean(signed) == 0.0
    ours = metrics.effective_dpu(torch.from_numpy(accepted[:, None] == 1), torch.from_numpy(s[:, None]))
    assert ours.flatten().tolist() == [1.0, np.abs(signed).mean()]


def test_temporal_measures_use_both_ends_and_n_minus_1() -> None:
    series = torch.tensor([[9.0], [1.0], [2.0], [6.0], [9.0]])
    assert metrics.temporal_mean(series, (1, 3)).item() == pytest.approx(3.0)
    assert metrics.temporal_variation(series, (1, 3)).item() == pytest.approx(np.sqrt((4 + 1 + 9) / 2))


@pytest.mark.whole
@pytest.mark.parametrize("selective", [False, True])
def test_the_standard_error_of_the_utility_is_its_spread_over_samples(selective: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    utilities, errors = [], []
    for _ in range(2000):
        x = torch.randn(400, generator=generator)
        label = (torch.rand(400, generator=generator) < torch.sigmoid(x)).float()
        propensity, revealing = torch.sigmoid(2 * x).unsqueeze(0), torch.sigmoid(x + 0.5)
        known = torch.rand(400, generator=generator) < revealing
        weight = torch.where(known, 1 / revealing, 0.0) if selective else None
        utilities.append(metrics.utility(propensity, label, 0.5, weight).item())
        errors.append(metrics.utility_standard_error(propensity, label, 0.5, weight).item())
    assert np.mean(errors) == pytest.approx(np.std(utilities), rel=0.05)


def test_spread_over_seeds() -> None:
    # Mean 2, standard deviation √(5/3); t with 3 degrees of freedom has its 97.5 % quantile at 3.1824.
    spread = metrics.Spread.over_seeds(np.array([0.5, 1.5, 2.5, 3.5]))
    assert spread is not None
    half = 3.182446305 * np.sqrt(5 / 3) / 2
    assert (spread.mean, spread.std) == pytest.approx((2.0, np.sqrt(5 / 3)))
    assert spread.interval == pytest.approx((2.0 - half, 2.0 + half))
    cut = metrics.Spread.over_seeds(np.array([0.5, 1.5, 2.5, 3.5]), bounds=(0.0, 3.0))
    assert cut is not None
    assert cut.interval == (0.0, 3.0)
    assert metrics.Spread.over_seeds(np.array([2.0])) == metrics.Spread(2.0, None, None)
    assert metrics.Spread.over_seeds(np.array([1.0, np.nan])) is None


@pytest.mark.whole
@pytest.mark.parametrize("n_seeds", [2, 3, 5, 10, 50])
def test_intervals_cover_the_mean_as_often_as_they_say(n_seeds: int) -> None:
    generator, covered = np.random.default_rng(n_seeds), 0
    for values in generator.normal(3.0, 2.0, (4000, n_seeds)):
        spread = metrics.Spread.over_seeds(values)
        assert spread is not None
        assert spread.interval is not None
        covered += spread.interval[0] <= 3.0 <= spread.interval[1]
    assert 0.93 < covered / 4000 < 0.97
