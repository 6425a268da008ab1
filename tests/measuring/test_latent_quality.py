from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from torch import Tensor

from fairall.data.features import Schema
from fairall.data.load import load_dataset
from fairall.measuring.latent_quality import (
    auc,
    balanced_accuracy,
    label_agreement,
    mutual_information,
    readability,
    representation_measures,
    variance_gap,
)
from fairall.models.learner import Setting
from tests.conftest import ComposeConfig, MakePeople, Shown

N = 4000
READABLE = [f"latent_{target}_{score}" for target in ("s", "label") for score in ("balanced_accuracy", "auc")]
ACROSS_GROUPS = ["latent_variance_gap", "latent_label_agreement"]
INFORMATION = "latent_ground_truth_information"


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def latents(use: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A latent with a broad axis that tells the label, the groups using it as `use` says; label and group."""
    meant = rng().normal(size=(N, 2)) * [1.0, 0.1]
    good = meant[:, 0] + 0.3 * rng().normal(size=N) > 0
    advantaged = np.arange(N) % 2 == 0
    other = {"aligned": meant, "switched": meant[:, ::-1], "flipped": -meant, "scaled": 3.0 * meant + 5.0}
    return np.where(advantaged[:, None], meant, other[use]), good, advantaged


@pytest.mark.parametrize(
    ("use", "gap", "cosine"),
    [("aligned", 0.0, 1.0), ("flipped", 0.0, -1.0), ("switched", 0.99, 0.0), ("scaled", 8.0, 1.0)],
)
def test_gap_and_agreement_tell_other_axes_and_opposite_signs(use: str, gap: float, cosine: float) -> None:
    z, good, advantaged = latents(use)
    assert variance_gap(z, advantaged) == pytest.approx(gap, rel=0.05, abs=0.1)
    assert variance_gap(z, ~advantaged) == variance_gap(z, advantaged)
    assert label_agreement(z, good, advantaged) == pytest.approx(cosine, abs=0.1)


def test_without_both_groups_or_labels_there_is_nothing_to_compare() -> None:
    z, good, advantaged = latents("aligned")
    nobody = np.zeros(N, dtype=bool)
    assert np.isnan([variance_gap(z, group) for group in (nobody, ~nobody)]).all()
    pairs = (good, nobody), (good, ~nobody), (good | advantaged, advantaged), (good & advantaged, advantaged)
    assert np.isnan([label_agreement(z, *pair) for pair in pairs]).all()


def gaussian_information(means: list[float], shares: list[float]) -> float:
    """I(z; y) of z | y ~ N(means[y], 1) by quadrature, in nats."""

    def density(z: float) -> float:
        return sum(share * stats.norm.pdf(z, mean) for mean, share in zip(means, shares, strict=True))

    entropy, _ = integrate.quad(lambda z: -density(z) * np.log(density(z)), -12, 12, limit=200)
    return entropy - 0.5 * np.log(2 * np.pi * np.e)


@pytest.mark.parametrize(
    ("means", "shares"),
    [
        ([-0.5, 0.5], [0.5, 0.5]),
        ([-1.5, 1.5], [0.5, 0.5]),
        ([-1.0, 1.0], [0.85, 0.15]),
        ([-2.0, 0.0, 3.0], [0.3, 0.5, 0.2]),
    ],
)
@pytest.mark.parametrize("noise_axes", [0, 1])
def test_information_is_that_of_a_gaussian_mixture(
    means: list[float], shares: list[float], noise_axes: int
) -> None:
    draws = rng()
    y = draws.choice(len(means), p=shares, size=4 * N)
    z = np.array(means)[y] + draws.normal(size=len(y))
    z = np.column_stack([z, draws.normal(size=(len(y), noise_axes))])
    expected = gaussian_information(means, shares)
    assert 0.1 < expected < 1.0
    assert mutual_information(z, y) == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize(
    ("apart", "share", "abs_"), [(10.0, 0.5, 0.005), (10.0, 0.2, 0.005), (0.0, 0.5, 0.02)]
)
def test_a_latent_tells_the_entropy_of_what_it_determines_or_nothing(
    apart: float, share: float, abs_: float
) -> None:
    y = np.arange(N) < share * N
    told = stats.entropy([share, 1.0 - share]) * (apart > 0)
    assert mutual_information(apart * y[:, None] + rng().uniform(size=(N, 1)), y) == pytest.approx(
        told, abs=abs_
    )


def test_information_needs_more_people_of_a_value_than_neighbours() -> None:
    z, few = rng().normal(size=(100, 1)), np.arange(100) < 10
    known = [np.isfinite(mutual_information(z, few, neighbours=k)) for k in (9, 10)]
    assert (
        known == [True, False] == [np.isfinite(mutual_information(z, y)) for y in (np.arange(100) < 11, few)]
    )


class Known(Shown):
    """A latent and a way back that the test gives."""

    def __init__(self, encode: Callable[[Tensor, Tensor], Tensor], shift: Tensor | None = None) -> None:
        super().__init__()
        self.encode = encode
        self.shift = shift

    def representation(self, x: Tensor, s: Tensor) -> Tensor:
        return self.encode(x, s)

    def reconstruction(self, x: Tensor, s: Tensor) -> Tensor | None:
        return None if self.shift is None else x + self.shift


def test_readability_is_learnt_from_one_half_and_scored_on_the_other(
    schema: Schema, people: MakePeople
) -> None:
    # Seed 0 tells s and nothing else, seed 1 chance, seed 2 the opposite of s to whom it is not trained on.
    train, held_out = people(500), people(400)

    def encode(x: Tensor, s: Tensor) -> Tensor:
        sign = 1.0 if x.shape[1] == 500 else -1.0
        return torch.stack([s[0], torch.randn(x.shape[1]), sign * s[2]]).unsqueeze(-1)

    measures = representation_measures(Known(encode), schema, train, held_out, 3)
    assert measures["latent_s_auc"] == pytest.approx([1.0, 0.5, 0.0], abs=0.1)
    assert measures["latent_s_balanced_accuracy"] == pytest.approx([1.0, 0.5, 0.0], abs=0.1)
    assert measures["latent_label_auc"] == pytest.approx([0.5, 0.5, 0.5], abs=0.1)
    assert not any(name.startswith("reconstruction") for name in measures)


def test_readability_of_a_target_with_one_value_is_nan(schema: Schema, people: MakePeople) -> None:
    train, held_out = people(60), people(40)
    held_out.label[:] = 1.0
    measures = representation_measures(Known(lambda x, s: x[..., :2]), schema, train, held_out, 2)
    assert np.isnan(measures["latent_label_auc"]).all()
    assert np.isnan(measures["latent_label_agreement"]).all()
    assert np.isfinite(measures["latent_s_auc"]).all()


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_a_seed_that_diverged_leaves_the_others_their_measures(
    wrong: float, schema: Schema, people: MakePeople
) -> None:
    def encode(x: Tensor, s: Tensor) -> Tensor:
        z = x[..., :2].clone()
        z[0, 3] = wrong
        return z

    held_out = people(40)
    held_out = replace(held_out, ground_truth=torch.arange(40) % 2)
    measures = representation_measures(Known(encode), schema, people(60), held_out, 2)
    for name in (*READABLE, *ACROSS_GROUPS, INFORMATION):
        assert np.isnan(measures[name]).tolist() == [True, False], name


def test_reconstruction_error_is_absolute_for_numbers_and_counts_wrong_categories(
    schema: Schema, people: MakePeople
) -> None:
    shift = torch.tensor([-0.5, 2.0, 1.0, 0.0, 3.0])
    measures = representation_measures(
        Known(lambda x, s: x[..., :1], shift), schema, people(60), people(40), 2
    )
    expected = {"height": 0.5, "visits": 2.0, "member": 1.0, "colour": 0.0, "size": 1.0}
    for name, error in expected.items():
        assert measures[f"reconstruction_error_{name}"] == pytest.approx([error, error], abs=1e-6), name


@pytest.mark.parametrize(
    ("name", "dataset"),
    [
        ("fairall_I_II", "synthetic"),
        ("fairlab_I_II", "synthetic"),
        ("fairall_I_II", "credit"),
        ("fairlog", "credit"),
    ],
)
def test_methods_with_a_latent_have_every_figure_and_information_where_the_truth_is_known(
    name: str, dataset: str, compose_config: ComposeConfig
) -> None:
    rows = ["dataset.rows.pool=300", "dataset.rows.test=300"] * (dataset == "synthetic")
    data = load_dataset(dataset, *rows).prepare()
    config = compose_config("preset=quick", "seeds=3", f"model={name}", f"dataset={dataset}")
    method = config.model.build(Setting.of(data.schema, config))
    measures = representation_measures(method, data.schema, data.train, data.test, 3)
    errors = [f"reconstruction_error_{feature}" for feature in data.schema.names]
    known = {*READABLE, *ACROSS_GROUPS, *errors, *[INFORMATION] * (dataset == "synthetic")}
    assert set(measures) == (set() if name == "fairlog" else known)
    for figure, values in measures.items():
        assert values.shape == (3,)
        assert np.isfinite(values).all(), figure


def test_scores_are_those_of_scikit_learn() -> None:
    draw = rng()
    target = draw.random(500) < 0.3
    score, weight = np.round(draw.normal(size=500) + target, 1), draw.random(500)  # with equal scores
    assert auc(target, score, weight) == pytest.approx(roc_auc_score(target, score, sample_weight=weight))
    theirs = balanced_accuracy_score(target, score > 0, sample_weight=weight)
    assert balanced_accuracy(target, score > 0, weight) == pytest.approx(theirs)


def test_a_regression_on_latents_is_that_of_scikit_learn() -> None:
    z, good, _ = latents("aligned")
    weight = rng().random(N)
    model = LogisticRegression(class_weight="balanced", tol=1e-10, max_iter=1000)
    score = model.fit(z / (z.std(0) + 1e-6), good, weight).decision_function(z / (z.std(0) + 1e-6))
    theirs = balanced_accuracy_score(good, score > 0), roc_auc_score(good, score)
    assert readability((z, good, weight), (z, good, np.ones(N))) == pytest.approx(theirs)
