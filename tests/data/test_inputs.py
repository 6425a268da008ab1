"""How people are standardised, how nets see their features, and in which order they apply."""

import numpy as np
import pytest
import torch
from torch import Tensor

from fairall.config.schema import NetInputs, ScalerRows
from fairall.data.features import BLOCK_COLUMNS, DISCRETE, Feature, FeatureInputs, Kind, Schema
from fairall.data.load import load_dataset
from fairall.data.prepared import BLOCK, FURTHEST, PreparedData, Scaler
from fairall.models.learner import Setting
from tests.conftest import LOANS, MEANING, ComposeConfig
from tests.data.test_own_table import BY_COLUMN, PARTS, ROW, own, people

ROLES = ["train", "validation", "test", "pool", "warm_up"]
CSV = [f"dataset.path={LOANS}", *MEANING, "dataset.drop=[id,decision,propensity]"]
Both = tuple[PreparedData, PreparedData]


@pytest.fixture(scope="module", params=["credit", "csv", "synthetic"])
def both(request: pytest.FixtureRequest) -> Both:
    """The same data standardised by the training rows, and each file by itself."""
    dataset = load_dataset(request.param, *(CSV if request.param == "csv" else []))
    by_training, by_itself = (dataset.prepare(scaler=way) for way in ScalerRows)
    return by_training, by_itself


def by_file(schema: Schema, x: np.ndarray) -> Tensor:
    return Scaler(schema, ScalerRows.each_file).transform_file(x)


@pytest.mark.parametrize("role", ROLES)
def test_each_file_is_standard_by_itself_and_otherwise_the_same_people_in_the_same_order(
    both: Both, role: str
) -> None:
    of_training, of_itself = (
        data.warm_up(128) if role == "warm_up" else getattr(data, role) for data in both
    )
    assert both[0].schema.columns(Kind.REAL)
    for i, feature in enumerate(both[0].schema):
        by_training, by_itself = of_training.x[:, i], of_itself.x[:, i]
        if feature.kind is Kind.REAL:
            by_hand = (by_training - by_training.mean()) / by_training.std(correction=0)
            torch.testing.assert_close(by_itself, by_hand, rtol=0, atol=1e-4)
            assert torch.allclose(by_training, by_itself, atol=1e-4) == (
                role == "train" or (both[0].train is both[0].pool and role == "pool")
            )
            continue
        if feature.kind in DISCRETE:  # codes are one apart here
            by_training = by_training - by_training.min() + feature.codes[0]
        assert torch.equal(by_training, by_itself), feature.name
    for name in ("s", "label", "ground_truth"):
        np.testing.assert_array_equal(getattr(of_training, name), getattr(of_itself, name))


def test_the_scaler_is_that_of_the_training_rows(both: Both) -> None:
    for data in both:
        raw = both[0].pool.x.double().numpy() * data.scaler.scale + data.scaler.mean
        np.testing.assert_allclose(raw, data.pool_table.features, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("n", [128, 10**6])
def test_warm_up_is_the_first_of_the_pool_and_at_most_the_pool(both: Both, n: int) -> None:
    by_training, by_itself = both
    for data in both:
        people, size = data.warm_up(n), min(n, len(data.pool))
        assert len(people) == size
        assert torch.equal(people.s, data.pool.s[:size])
        assert torch.equal(people.label, data.pool.label[:size])
    assert torch.equal(by_training.warm_up(n).x, by_training.pool.x[:size])
    raw = by_itself.pool_table.features[:size]
    torch.testing.assert_close(by_itself.warm_up(n).x, by_file(by_itself.schema, raw))


def test_the_lowest_code_among_a_files_rows_becomes_the_first_of_the_feature() -> None:
    schema = Schema([Feature("grade", Kind.CATEGORICAL, (10.0, 20.0, 40.0)), Feature("visits", Kind.COUNT)])
    x = np.array([[20.0, 7.0], [40.0, 8.0], [20.0, 9.0]])
    assert by_file(schema, x).tolist() == [[10.0, 7.0], [20.0, 8.0], [10.0, 9.0]]
    assert x[0, 0] == 20.0


@pytest.mark.usefixtures("in_empty_folder")
def test_a_split_without_the_lowest_code_is_warned_of() -> None:
    source = own(people(part=PARTS, town=np.where(ROW > 0, people()["town"], "Bath")), BY_COLUMN)
    for way, warned in ((ScalerRows.training_rows, 0), (ScalerRows.each_file, 1)):
        warnings = [line for line in source.prepare(scaler=way).warnings if "each_file" in line]
        assert len(warnings) == warned
    assert "of town for the first one" in warnings[0]


def test_applicants_are_on_the_scale_of_the_training_people() -> None:
    synthetic = load_dataset("synthetic")
    first, second = (vars(synthetic.prepare(scaler=way).applicants(64, [0, 1]).next()) for way in ScalerRows)
    for name in ("x", "counterfactual_x"):
        assert torch.equal(first[name], second[name])


def test_what_does_not_vary_becomes_zero_and_outliers_stay_within_bounds() -> None:
    schema = Schema([Feature("same", Kind.REAL), Feature("far", Kind.REAL), Feature("visits", Kind.COUNT)])
    x = np.array([[3.0, -1.0, 7.0], [3.0, 1.0, 900.0]])
    scaler = Scaler(schema.measured(x))
    assert scaler.transform(x).tolist() == [[0.0, -1.0, 7.0], [0.0, 1.0, 900.0]]
    seen = scaler.transform(np.array([[3.0, 1e6, 1e6], [3.0, -1e6, 0.0]]))
    assert seen.tolist() == [[0.0, FURTHEST, 1e6], [0.0, -FURTHEST, 0.0]]


def test_blocks_of_people_and_of_features_are_scaled_as_all_at_once() -> None:
    x = np.random.default_rng(0).normal(5.0, 3.0, (BLOCK + 1, BLOCK_COLUMNS + 1))
    scaler = Scaler(Schema([Feature(f"x{i}", Kind.REAL) for i in range(x.shape[1])]).measured(x))
    np.testing.assert_array_equal(scaler.transform(x), ((x - x.mean(0)) / x.std(0)).astype(np.float32))


X = torch.tensor([[0.5, 3.0, 2.0, 3.0, 5.0], [-1.0, 0.0, 1.0, 1.0, 0.0]])


@pytest.mark.parametrize(
    ("inputs", "rows"),
    [
        ("codes", [[0.5, 3.0, 1.0, 2.0, 5.0], [-1.0, 0.0, 0.0, 0.0, 0.0]]),
        (
            "one_hot",
            [
                [0.5, 3.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
                [-1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0],
            ],
        ),
    ],
)
def test_codes_go_in_from_0_or_as_an_indicator_each(
    inputs: str, rows: list[list[float]], schema: Schema
) -> None:
    features = FeatureInputs(schema.seen_as(NetInputs[inputs]))
    assert features.size == len(rows[0])
    assert features(X).tolist() == rows


@pytest.mark.parametrize("inputs", ["centred", "standardised"])
def test_counts_and_codes_are_centred_and_standardised_by_the_training_rows(inputs: str) -> None:
    data = load_dataset("credit").prepare()
    schema = data.schema.seen_as(NetInputs[inputs])
    features, before = FeatureInputs(schema), data.train.x  # real features are standardised already
    scale = before.std(0, correction=0) if inputs == "standardised" else 1.0
    expected = (before - before.mean(0)) / scale
    torch.testing.assert_close(features(before), expected, rtol=0, atol=1e-5)
    assert features(data.test.x).mean(0).abs().max() > 1e-3


@pytest.mark.parametrize(("model", "chosen"), [("fairlog", "standardised"), ("fairall_I_II", "codes")])
def test_inputs_are_those_of_the_method_unless_the_protocol_says_which(
    model: str, chosen: str, schema: Schema, compose_config: ComposeConfig
) -> None:
    for word, expected in (("corrected", chosen), ("published_code", "codes")):
        config = compose_config(f"model={model}", f"protocol={word}")
        assert Setting.of(schema, config).schema.inputs.name == expected
    config = compose_config(f"model={model}", "protocol.inputs=one_hot")
    assert Setting.of(schema, config).schema.inputs is NetInputs.one_hot


def test_a_feature_that_does_not_vary_in_training_is_not_divided_by_zero() -> None:
    schema = Schema([Feature("visits", Kind.COUNT)]).measured(np.full((5, 1), 3.0))
    inputs = FeatureInputs(schema.seen_as(NetInputs.standardised))
    assert inputs(torch.tensor([[3.0], [5.0]])).tolist() == [[0.0], [2.0]]


LOGGED = "dataset.decision=decision dataset.accepted=granted dataset.propensity=propensity dataset.drop=[id]"
SOURCES = {
    "recycled": ["credit"],
    "weighted": ["csv", f"dataset.path={LOANS}", *MEANING, *LOGGED.split()],
    "drawn": ["synthetic"],
}


@pytest.mark.parametrize("source", SOURCES)
def test_applicants_are_the_seeds_own_and_go_on_from_a_state(source: str) -> None:
    data = load_dataset(*SOURCES[source]).prepare()
    stream, alone, resumed = (data.applicants(64, seeds) for seeds in ([0, 1], [1], [0, 1]))
    first = stream.next().x
    assert torch.equal(alone.next().x[0], first[1])
    resumed.load_state_dict(stream.state_dict())
    second = stream.next().x
    assert torch.equal(resumed.next().x, second)
    assert not torch.equal(first, second)
