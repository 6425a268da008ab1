from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from fairall.config.schema import ScalerRows
from fairall.data.features import DISCRETE, Feature, Kind, Schema
from fairall.data.load import load_dataset
from fairall.data.people import People
from fairall.data.prepared import FURTHEST, PreparedData, Scaler
from fairall.data.synthetic import Synthetic

ROLES = ["train", "validation", "test", "pool"]


@pytest.fixture(scope="module")
def own_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with features of every kind."""
    draw = np.random.default_rng(0)
    words = np.array(["red", "green", "blue"])
    rows = [
        f"{draw.normal(50, 9):.4f},{draw.poisson(3)},{'ab'[draw.integers(2)]},{words[draw.integers(3)]},"
        f"{'mf'[draw.integers(2)]},{'yes' if draw.random() < 0.6 else 'no'}"
        for _ in range(400)
    ]
    path = tmp_path_factory.mktemp("own") / "loans.csv"
    path.write_text("\n".join(["height,visits,member,colour,sex,repaid", *rows]))
    return path


def prepared(name: str, own_csv: Path, scaler: ScalerRows) -> PreparedData:
    meaning = f"path={own_csv} label=repaid positive=yes sensitive=sex advantaged=m".split()
    words = [f"dataset.{word}" for word in meaning if name == "csv"]
    return load_dataset(name, *words).prepare(scaler=scaler)


@pytest.fixture(scope="module", params=["credit", "csv", "synthetic"])
def both(request: pytest.FixtureRequest, own_csv: Path) -> tuple[PreparedData, PreparedData]:
    """The same data standardised by the training rows, and each file by itself."""
    by_training, by_itself = (prepared(request.param, own_csv, way) for way in ScalerRows)
    return by_training, by_itself


def real(data: PreparedData) -> list[int]:
    return [i for i, feature in enumerate(data.schema) if feature.kind is Kind.REAL]


def people_of(data: PreparedData, role: str) -> People:
    return data.warm_up(128) if role == "warm_up" else getattr(data, role)


def by_file(schema: Schema, x: np.ndarray) -> Tensor:
    return Scaler(schema, ScalerRows.each_file).of_file(x).transform(x)


def is_standard(x: Tensor) -> bool:
    means, deviations = x.double().mean(0), x.double().std(0, correction=0)
    return bool((means.abs() < 1e-4).all() and ((deviations - 1).abs() < 1e-4).all())


@pytest.mark.parametrize("role", [*ROLES, "warm_up"])
def test_each_file_has_zero_mean_and_unit_variance_on_itself(
    both: tuple[PreparedData, PreparedData], role: str
) -> None:
    _, by_itself = both
    assert real(by_itself)
    assert is_standard(people_of(by_itself, role).x[:, real(by_itself)])


@pytest.mark.parametrize("role", ["validation", "test", "warm_up"])
def test_training_rows_standardise_nobody_else(both: tuple[PreparedData, PreparedData], role: str) -> None:
    by_training, by_itself = both
    assert is_standard(by_training.train.x[:, real(by_training)])
    assert not is_standard(people_of(by_training, role).x[:, real(by_training)])
    raw = by_training.pool.x.double().numpy() * by_training.scaler.scale + by_training.scaler.mean
    np.testing.assert_allclose(raw, by_training.pool_table.features, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(by_itself.scaler.mean, by_training.scaler.mean)
    np.testing.assert_array_equal(by_itself.scaler.scale, by_training.scaler.scale)


@pytest.mark.parametrize("role", [*ROLES, "warm_up"])
def test_people_are_the_same_in_the_same_order_however_scaled(
    both: tuple[PreparedData, PreparedData], role: str
) -> None:
    of_training, of_itself = (people_of(data, role) for data in both)
    columns = real(both[0])
    for i, feature in enumerate(both[0].schema):
        if feature.kind is Kind.REAL:
            continue
        column = of_training.x[:, i]
        if feature.kind in DISCRETE:
            # Codes are one apart here.
            column = column - column.min() + feature.codes[0]
        assert torch.equal(column, of_itself.x[:, i]), feature.name
    for name in ("s", "label", "ground_truth"):
        one, other = getattr(of_training, name), getattr(of_itself, name)
        assert (one is None and other is None) or torch.equal(one, other), name
    # Real features differ by location and scale alone.
    x = of_training.x[:, columns].double()
    expected = (x - x.mean(0)) / x.std(0, correction=0)
    torch.testing.assert_close(of_itself.x[:, columns].double(), expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("n", [1, 37, 128, 10**6])
def test_warm_up_is_the_first_of_the_pool_and_at_most_the_pool(
    both: tuple[PreparedData, PreparedData], n: int
) -> None:
    for data in both:
        people, size = data.warm_up(n), min(n, len(data.pool))
        assert len(people) == size
        assert torch.equal(people.s, data.pool.s[:size])
        assert torch.equal(people.label, data.pool.label[:size])
    by_training, by_itself = both
    assert torch.equal(by_training.warm_up(n).x, by_training.pool.x[:size])
    raw = by_itself.pool_table.features[:size]
    torch.testing.assert_close(by_itself.warm_up(n).x, by_file(by_itself.schema, raw))


def test_the_lowest_code_among_a_files_rows_becomes_the_first_of_the_feature() -> None:
    codes = (10.0, 20.0, 40.0)
    schema = Schema([Feature("grade", Kind.CATEGORICAL, codes), Feature("visits", Kind.COUNT)])
    x = np.array([[20.0, 7.0], [40.0, 8.0], [20.0, 9.0]])
    assert by_file(schema, x).tolist() == [[10.0, 7.0], [20.0, 8.0], [10.0, 9.0]]
    assert x[0, 0] == 20.0


def test_a_split_without_the_lowest_code_is_warned_of(tmp_path: Path) -> None:
    path, words = (
        tmp_path / "own.csv",
        ["label=y", "positive=1", "sensitive=s", "advantaged=a", "split.column=part"],
    )
    rows = [
        f"{'q' if part == 'train' and i == 0 else 'rt'[i % 2]},{i % 7},{'ab'[i % 3 == 0]},{i % 2},{part}"
        for part in ("train", "validation", "test")
        for i in range(60)
    ]
    path.write_text("\n".join(["town,visits,s,y,part", *rows]))
    source = load_dataset("csv", f"dataset.path={path}", *(f"dataset.{word}" for word in words))
    assert not any("each_file" in warning for warning in source.prepare().warnings)
    (warning,) = (w for w in source.prepare(scaler=ScalerRows.each_file).warnings if "each_file" in w)
    assert "of town for the first one" in warning


@pytest.mark.parametrize("role", ["validation", "test"])
def test_synthetic_people_and_their_counterfactuals_are_on_one_scale(role: str) -> None:
    dataset = load_dataset("synthetic")
    assert isinstance(dataset, Synthetic)
    people = getattr(dataset.prepare(scaler=ScalerRows.each_file), role)
    raw = dataset.individuals(role, len(people))
    for i, (name, of_s) in enumerate([("LSAT", 3.5), ("GPA", 1.0)]):
        moved = (people.counterfactual_x - people.x)[:, i].double() * raw.values[name].std()
        torch.testing.assert_close(moved, -2 * of_s * people.s.double(), rtol=1e-4, atol=1e-4)


def test_synthetic_applicants_are_on_the_scale_of_the_pool() -> None:
    by_training, by_itself = (load_dataset("synthetic").prepare(scaler=way) for way in ScalerRows)
    one, other = (data.applicants(64, [0, 1]).next() for data in (by_training, by_itself))
    assert torch.equal(one.x, other.x)
    assert one.counterfactual_x is not None
    assert other.counterfactual_x is not None
    assert torch.equal(one.counterfactual_x, other.counterfactual_x)
    assert torch.equal(by_training.pool.x, by_itself.pool.x)
    shift = (one.counterfactual_x - one.x)[..., 0].double() * by_training.scaler.scale[0]
    torch.testing.assert_close(shift, -7.0 * one.s.double(), rtol=1e-4, atol=1e-4)


def test_table_applicants_are_the_training_people(own_csv: Path) -> None:
    for name in ("credit", "csv"):
        data = prepared(name, own_csv, ScalerRows.each_file)
        everybody = data.applicants(len(data.train), [0]).next().x[0]
        assert torch.equal(everybody.sort(0).values, data.train.x.sort(0).values)


def test_what_does_not_vary_becomes_zero_and_outliers_stay_within_bounds() -> None:
    schema = Schema([Feature("same", Kind.REAL), Feature("far", Kind.REAL), Feature("visits", Kind.COUNT)])
    x = np.array([[3.0, -1.0, 7.0], [3.0, 1.0, 900.0]])
    scaler = Scaler(schema.measured(x))
    assert scaler.transform(x).tolist() == [[0.0, -1.0, 7.0], [0.0, 1.0, 900.0]]
    seen = scaler.transform(np.array([[3.0, 1e6, 1e6], [3.0, -1e6, 0.0]]))
    assert seen.tolist() == [[0.0, FURTHEST, 1e6], [0.0, -FURTHEST, 0.0]]
