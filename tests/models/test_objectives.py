import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from fairall.models.objectives import cost_sensitive_cross_entropy, ips_risk, ips_weight, masked_mean


def test_cost_sensitive_cross_entropy_is_the_papers_formula() -> None:
    logit, label, cost = torch.tensor([0.3, -2.0, 1.0]), torch.tensor([1.0, 0.0, 0.0]), 0.2
    q = torch.sigmoid(logit)
    expected = -(cost * (1 - label) * torch.log(1 - q) + (1 - cost) * label * torch.log(q))
    torch.testing.assert_close(cost_sensitive_cross_entropy(logit, label, cost), expected)


@pytest.mark.parametrize(
    ("most", "expected"),
    [(None, [2.0, 200.0, 1.0, 1.0, 1.25]), (100, [2.0, 100.0, 1.0, 1.0, 1.25]), (1, [1.0] * 5)],
)
def test_weight_is_one_over_the_propensity_of_the_accepted_within_its_bound(
    most: float | None, expected: list[float]
) -> None:
    propensity = torch.tensor([[0.5, 0.005, 0.002, 1.0, 0.8]])
    accepted = torch.tensor([[True, True, False, True, True]])
    torch.testing.assert_close(ips_weight(propensity, accepted, most), torch.tensor([expected]))


@pytest.mark.parametrize("most", [None, 100])
def test_a_rejected_row_that_could_not_be_accepted_leaves_everything_finite(most: float | None) -> None:
    loss = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
    propensity = torch.tensor([[0.0, 0.25, 0.0]], requires_grad=True)
    accepted = torch.tensor([[False, True, False]])
    weight = ips_weight(propensity, accepted, most)
    assert weight.tolist() == [[1.0, 4.0, 1.0]]
    of_loss, of_propensity = torch.autograd.grad(ips_risk(loss, weight, accepted).sum(), (loss, propensity))
    assert of_loss.tolist() == [[0.0, 4.0, 0.0]]
    assert of_propensity.tolist() == [[0.0, -32.0, 0.0]]


def test_inverse_propensity_weights_make_the_risk_unbiased() -> None:
    loss = torch.tensor([1.0, 5.0, 2.0, 0.5])
    propensity = torch.tensor([0.9, 0.1, 0.4, 0.7])
    weighted = unweighted = 0.0
    # The exact expectation: every possible set of decisions with its probability.
    for decisions in itertools.product([False, True], repeat=4):
        accepted = torch.tensor([decisions])
        chance = torch.where(accepted[0], propensity, 1 - propensity).prod().item()
        share = accepted.float().mean().item()
        weight = ips_weight(propensity[None], accepted, None)
        weighted += chance * share * ips_risk(loss[None], weight, accepted).item()
        unweighted += chance * masked_mean(loss[None], accepted).item()
    assert weighted == pytest.approx(loss.mean().item(), rel=1e-5)
    assert abs(unweighted - loss.mean().item()) > 0.2


def test_nobody_labelled_is_no_loss_and_no_nan() -> None:
    loss = torch.tensor([[1.0, 2.0]], requires_grad=True)
    nobody = torch.zeros(1, 2, dtype=torch.bool)
    risk = ips_risk(loss, ips_weight(torch.zeros(1, 2), nobody, None), nobody)
    (gradient,) = torch.autograd.grad(risk.sum(), loss)
    assert risk.tolist() == [0.0]
    assert gradient.tolist() == [[0.0, 0.0]]


def _gradcheck(function: Callable[..., Tensor], *inputs: Tensor) -> bool:
    return torch.autograd.gradcheck(function, tuple(i.double().requires_grad_() for i in inputs))


def test_gradients_by_finite_differences() -> None:
    logit = torch.randn(3)
    label = torch.tensor([0.0, 1.0, 1.0])
    assert _gradcheck(lambda a: cost_sensitive_cross_entropy(a, label, 0.3), logit)
    accepted, propensity = torch.tensor([[True, False, True]]), torch.tensor([[0.2, 0.5, 0.9]])
    weight = ips_weight(propensity, accepted, None)
    assert _gradcheck(lambda a: ips_risk(a, weight, accepted), logit[None])
