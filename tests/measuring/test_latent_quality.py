from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from torch import Tensor

from fairall.data.features import Schema
from fairall.data.load import load_dataset
from fairall.measuring.latent_quality import (
    NEIGHBOURS,
    label_directions,
    mutual_information,
    readability,
    representation_measures,
    variance_gap,
)
from fairall.metrics import LATENT
from fairall.models.learner import Setting
from tests.conftest import ComposeConfig, MakePeople

N = 4000
Encode = Callable[[Tensor, Tensor], Tensor]


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
def test_gap_and_directions_tell_other_axes_and_opposite_signs(use: str, gap: float, cosine: float) -> None:
    z, good, advantaged = latents(use)
    assert variance_gap(z, advantaged) == pytest.approx(gap, rel=0.05, abs=0.1)
    assert variance_gap(z, ~advantaged) == variance_gap(z, advantaged)
    first, second = label_directions(z, good, advantaged)
    assert first @ second == pytest.approx(cosine, abs=0.1)
    # A group whose known labels are all the same has none.
    directions = label_directions(z, good, advantaged, 1.0 - (advantaged & good))
    assert np.isnan(directions).all(1).tolist() == [True, False]


@pytest.mark.parametrize(
    ("means", "shares"),
    [
        ([-0.5, 0.5], [0.5, 0.5]),
        ([-2.0, 0.0, 3.0], [0.3, 0.5, 0.2]),
        ([0.0, 0.0], [0.5, 0.5]),  # tells nothing
        ([-9.0, 9.0], [0.8, 0.2]),  # tells all, the entropy of y
    ],
)
def test_information_is_that_of_a_gaussian_mixture(means: list[float], shares: list[float]) -> None:
    draws = rng()
    y = draws.choice(len(means), p=shares, size=4 * N)
    z = draws.normal(size=(len(y), 2))
    z[:, 0] += np.array(means)[y]
    density = stats.norm.pdf(z[:, :1], means)
    told = np.log(density[np.arange(len(y)), y] / (density @ shares)).mean()
    for known in (z, z[:, :1]):  # with an axis of noise, and without
        assert mutual_information(known, y) == pytest.approx(told, abs=0.03)


def test_information_needs_more_people_of_a_value_than_neighbours() -> None:
    z, people = rng().normal(size=(100, 1)), np.arange(100)
    known = [np.isfinite(mutual_information(z, people < NEIGHBOURS + more)) for more in (0, 1)]
    assert known == [False, True]


def known(encode: Encode, shift: Tensor | None = None) -> Any:
    """A learner with a latent and a way back."""
    return SimpleNamespace(
        representation=encode, reconstruction=lambda x, s: None if shift is None else x + shift
    )


def test_readability_is_learnt_from_one_half_and_scored_on_the_other(
    schema: Schema, people: MakePeople
) -> None:
    # Seed 0 tells s and nothing else, seed 1 chance, seed 2 the opposite of s to whom it is not trained on.
    def encode(x: Tensor, s: Tensor) -> Tensor:
        sign = 1.0 if x.shape[1] == 500 else -1.0
        return torch.stack([s[0], torch.randn(x.shape[1]), sign * s[2]]).unsqueeze(-1)

    train, held_out = people(500), people(400)
    measures = representation_measures(known(encode), schema, train, held_out, 3)
    assert measures["latent_s_auc"] == pytest.approx([1.0, 0.5, 0.0], abs=0.1)
    assert measures["latent_s_balanced_accuracy"] == pytest.approx([1.0, 0.5, 0.0], abs=0.1)
    assert measures["latent_label_auc"] == pytest.approx([0.5, 0.5, 0.5], abs=0.1)
    assert not any(name.startswith("reconstruction") for name in measures)


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_a_seed_that_diverged_leaves_the_others_their_measures(
    wrong: float, schema: Schema, people: MakePeople
) -> None:
    def encode(x: Tensor, s: Tensor) -> Tensor:
        z = x[..., :2].clone()
        z[0, 3] = wrong
        return z

    held_out, shift = people(40), torch.tensor([-0.5, 2.0, 1.0, 0.0, 3.0])
    held_out = replace(held_out, ground_truth=torch.arange(40) % 2)
    measures = representation_measures(known(encode, shift), schema, people(60), held_out, 2)
    for name in {*LATENT} - {"latent_s_mmd", "latent_s_dependence"}:
        assert np.isnan(measures[name]).tolist() == [True, False], name
    # Absolute for numbers, the share of wrong values for categories.
    expected = {"height": 0.5, "visits": 2.0, "member": 1.0, "colour": 0.0, "size": 1.0}
    for name, error in expected.items():
        assert measures[f"reconstruction_error_{name}"] == pytest.approx([error, error], abs=1e-6), name


@pytest.mark.parametrize(
    ("name", "dataset"), [("fairall_I_II", "synthetic"), ("fairlab_I_II", "credit"), ("fairlog", "credit")]
)
def test_methods_with_a_latent_have_every_figure_and_information_where_the_truth_is_known(
    name: str, dataset: str, compose_config: ComposeConfig
) -> None:
    rows = ["dataset.rows.pool=300", "dataset.rows.test=300"] * (dataset == "synthetic")
    data = load_dataset(dataset, *rows).prepare()
    config = compose_config("preset=quick", "seeds=3", f"model={name}", f"dataset={dataset}")
    method = config.model.build(Setting.of(data.schema, config))
    measures = representation_measures(method, data.schema, data.train, data.test, 3)
    errors = {f"reconstruction_error_{feature}" for feature in data.schema.names}
    named = {*LATENT, *errors} - {"latent_s_dependence"}  # a criterion of selection
    assert measures.keys() == (set() if name == "fairlog" else named)
    unknown = ["latent_s_mmd", *["latent_ground_truth_information"] * (dataset == "credit")]
    for figure, values in measures.items():
        assert np.isfinite(values).tolist() == [figure not in unknown] * 3, figure


def test_readability_is_that_of_scikit_learn() -> None:
    z, good, _ = latents("aligned")
    weight, everybody = rng().random(N) * (np.arange(N) % 3 > 0), np.ones(N)
    model, scaled = LogisticRegression(class_weight="balanced", tol=1e-10, max_iter=1000), z / z.std(0)
    score = model.fit(scaled, good, weight).decision_function(scaled)
    accuracy = balanced_accuracy_score(good, score > 0, sample_weight=weight)
    theirs = accuracy, roc_auc_score(good, score, sample_weight=weight)
    assert readability((z, good, weight), (z, good, weight)) == pytest.approx(theirs)
    # A target with one known value has none.
    for parts in ([weight * good, everybody], [everybody, weight * ~good]):
        assert np.isnan(readability(*((z, good, of) for of in parts))).all()
