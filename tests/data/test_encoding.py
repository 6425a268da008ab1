import numpy as np
import pytest
import torch

from fairall.config.schema import NetInputs
from fairall.data.features import Feature, FeatureInputs, Kind, Schema
from fairall.data.load import load_dataset
from fairall.models.learner import Setting
from tests.conftest import ComposeConfig

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
