from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
import torch
from torch import Tensor, distributions

from fairall.data.features import Schema
from fairall.data.people import People
from fairall.nn import fused_decoder
from fairall.nn.fused_decoder import WeightedTargets, weighted_log_likelihood
from fairall.nn.likelihoods import MixedLikelihood
from fairall.nn.stacked import StackedMLP
from fairall.randomness import SeedStreams

E, B, Z, L = 3, 4, 2, 5


@pytest.fixture(params=[False, True], ids=["features", "features and utility"])
def case(request: pytest.FixtureRequest, schema: Schema, people: Callable[[int], People]) -> dict[str, Any]:
    """A decoder, what it is given and whom it decodes, in double precision, ready for gradients."""
    likelihood = MixedLikelihood(schema)
    n_outputs = likelihood.n_outputs + int(request.param)
    decoder = StackedMLP(Z + 1, [7, 6], n_outputs, SeedStreams(range(E), "decoder")).double()
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter, std=0.5)  # biases too, which start at zero
    arguments = {
        "decoder": decoder,
        "likelihood": likelihood,
        "given": torch.randn(E, Z + 1, B, L, dtype=torch.double, requires_grad=True),
        "x": people(E * B).x.double().view(E, B, -1),
        "weight": torch.rand(E, B, dtype=torch.double, requires_grad=True),
    }
    if request.param:
        arguments["utility"] = (torch.rand(E, B) < 0.5).double()
        arguments["utility_weight"] = torch.rand(E, B, dtype=torch.double, requires_grad=True)
    return arguments


def terms(case: dict[str, Any]) -> Tensor:
    names = [field.name for field in fields(WeightedTargets)]
    targets = WeightedTargets(**{name: case[name] for name in names if name in case})
    layers = case["decoder"].weights_and_biases()
    return weighted_log_likelihood(layers, case["likelihood"], case["given"], targets)


def by_hand(case: dict[str, Any]) -> Tensor:
    return terms(case).sum(-1)


def by_autograd(case: dict[str, Any]) -> Tensor:
    """The same, as its definition has it."""
    likelihood, given = case["likelihood"], case["given"]
    outputs = case["decoder"].forward_transposed(given.flatten(2)).unflatten(2, (B, L))
    total = case["weight"] * likelihood.log_prob(outputs[:, : likelihood.n_outputs], case["x"])
    if "utility" in case:
        of_utility = distributions.Bernoulli(logits=outputs[:, -1]).log_prob(case["utility"].unsqueeze(-1))
        total = total + case["utility_weight"] * of_utility.mean(-1)
    return total.sum(-1)


@pytest.mark.parametrize("cached", [1, 2 * 14 * B * L, 10**6], ids=["one by one", "two at a time", "all"])
def test_value_and_gradients_are_those_of_autograd(
    cached: int, case: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused_decoder, "CACHED", cached)
    learnt = [value for value in case.values() if isinstance(value, Tensor) and value.requires_grad]
    learnt += case["decoder"].parameters()
    upstream = torch.tensor([1.0, -2.0, 0.5], dtype=torch.double)

    value, expected = by_hand(case), by_autograd(case)
    torch.testing.assert_close(value, expected)
    gradients = torch.autograd.grad(value, learnt, upstream)
    for own, known in zip(gradients, torch.autograd.grad(expected, learnt, upstream), strict=True):
        torch.testing.assert_close(own, known)


def test_without_gradients_the_value_is_the_same(case: dict[str, Any]) -> None:
    with torch.no_grad():
        value = by_hand(case)
    torch.testing.assert_close(value, by_autograd(case).detach())


def test_sums_over_some_people_each_have_the_same_gradients(case: dict[str, Any]) -> None:
    layers = case["decoder"].weights_and_biases()
    whole = torch.autograd.grad(by_hand(case).sum(), layers)
    some = terms(case)
    in_parts = torch.autograd.grad((some[:, :1].sum(-1) + some[:, 1:].sum(-1)).sum(), layers)
    for own, known in zip(in_parts, whole, strict=True):
        assert torch.equal(own, known)


def test_people_with_different_factors_are_refused(case: dict[str, Any]) -> None:
    some = terms(case)
    with pytest.raises(RuntimeError, match="different factors"):
        (some[:, :1].sum() + 2.0 * some[:, 1:].sum()).backward()
