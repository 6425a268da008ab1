import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import Tensor, distributions

from fairall.models.objectives import (
    cost_sensitive_cross_entropy,
    gaussian_kl,
    ips_risk,
    masked_mean,
    mixture_kl,
)


def _mixture_integrand(good: float, loc: np.ndarray, scale: np.ndarray) -> object:
    def integrand(*z: float) -> float:
        point = np.array(z)
        parts = [stats.norm.pdf(point, loc[j], scale[j]).prod() for j in (0, 1)]
        density = (1 - good) * parts[0] + good * parts[1]
        prior = stats.norm.pdf(point).prod()
        return density * np.log(density / prior) if density > 1e-300 else 0.0

    return integrand


@pytest.mark.parametrize(
    ("good", "loc", "scale"),
    [
        (0.3, [[-1.0], [2.0]], [[0.5], [0.8]]),
        (0.5, [[0.0], [0.0]], [[1.0], [1.0]]),
        (0.9, [[0.5], [0.4]], [[0.2], [1.5]]),
        (0.6, [[-1.0, 0.5], [1.0, -0.5]], [[0.6, 0.9], [0.7, 0.4]]),
    ],
)
def test_mixture_kl_is_the_quadrature(good: float, loc: list, scale: list) -> None:
    locations, scales = np.array(loc), np.array(scale)
    exact, _ = integrate.nquad(
        _mixture_integrand(good, locations, scales), [(-8, 8)] * locations.shape[1], opts={"epsabs": 1e-6}
    )
    noise = torch.randn(2, 200_000, locations.shape[1], generator=torch.Generator().manual_seed(0))
    logit = torch.logit(torch.tensor(good))
    estimate = mixture_kl(logit, torch.tensor(loc), torch.tensor(scale), noise)
    assert estimate.item() == pytest.approx(exact, abs=0.01)


def test_mixture_kl_of_equal_components_is_gaussian() -> None:
    loc, scale = torch.randn(3, 1, 4).expand(3, 2, 4), torch.rand(3, 1, 4).expand(3, 2, 4) + 0.5
    noise = torch.randn(3, 2, 100_000, 4, generator=torch.Generator().manual_seed(0))
    estimate = mixture_kl(torch.zeros(3), loc, scale, noise)
    torch.testing.assert_close(estimate, gaussian_kl(loc[:, 0], scale[:, 0]), atol=0.03, rtol=0)


def test_mixture_kl_survives_a_certain_classifier() -> None:
    logit = torch.tensor([-200.0, 200.0], requires_grad=True)
    value = mixture_kl(logit, torch.randn(2, 2, 3), torch.rand(2, 2, 3) + 0.1, torch.randn(2, 2, 5, 3))
    (gradient,) = torch.autograd.grad(value.sum(), logit)
    assert value.isfinite().all()
    assert gradient.isfinite().all()


def test_gaussian_kl_is_that_of_torch_distributions() -> None:
    loc, scale = torch.randn(5, 3), torch.rand(5, 3) + 0.1
    expected = distributions.kl_divergence(
        distributions.Normal(loc, scale), distributions.Normal(torch.zeros(3), torch.ones(3))
    ).sum(-1)
    torch.testing.assert_close(gaussian_kl(loc, scale), expected)


def test_cost_sensitive_cross_entropy_is_the_papers_formula() -> None:
    logit, label, cost = torch.tensor([0.3, -2.0, 1.0]), torch.tensor([1.0, 0.0, 0.0]), 0.2
    q = torch.sigmoid(logit)
    expected = -(cost * (1 - label) * torch.log(1 - q) + (1 - cost) * label * torch.log(q))
    torch.testing.assert_close(cost_sensitive_cross_entropy(logit, label, cost), expected)


def test_inverse_propensity_weights_make_the_risk_unbiased() -> None:
    loss = torch.tensor([1.0, 5.0, 2.0, 0.5])
    propensity = torch.tensor([0.9, 0.1, 0.4, 0.7])
    weighted = unweighted = 0.0
    # The exact expectation: every possible set of decisions with its probability.
    for decisions in itertools.product([False, True], repeat=4):
        accepted = torch.tensor([decisions])
        chance = torch.where(accepted[0], propensity, 1 - propensity).prod().item()
        share = accepted.float().mean().item()
        weighted += chance * share * ips_risk(loss[None], propensity[None], accepted).item()
        unweighted += chance * masked_mean(loss[None], accepted).item()
    assert weighted == pytest.approx(loss.mean().item(), rel=1e-5)
    assert abs(unweighted - loss.mean().item()) > 0.2


def test_nobody_labelled_is_no_loss_and_no_nan() -> None:
    loss = torch.tensor([[1.0, 2.0]], requires_grad=True)
    nobody = torch.zeros(1, 2, dtype=torch.bool)
    risk = ips_risk(loss, torch.zeros(1, 2), nobody)
    (gradient,) = torch.autograd.grad(risk.sum(), loss)
    assert risk.tolist() == [0.0]
    assert gradient.tolist() == [[0.0, 0.0]]


def _gradcheck(function: Callable[..., Tensor], *inputs: Tensor) -> bool:
    return torch.autograd.gradcheck(function, tuple(i.double().requires_grad_() for i in inputs))


def test_gradients_by_finite_differences() -> None:
    generator = torch.Generator().manual_seed(1)
    logit = torch.randn(3, generator=generator)
    loc, scale = torch.randn(3, 2, 4, generator=generator), torch.rand(3, 2, 4, generator=generator) + 0.3
    noise = torch.randn(3, 2, 6, 4, generator=generator, dtype=torch.double)
    assert _gradcheck(lambda a, b, c: mixture_kl(a, b, c, noise), logit, loc, scale)
    assert _gradcheck(gaussian_kl, loc, scale)
    label = torch.tensor([0.0, 1.0, 1.0])
    assert _gradcheck(lambda a: cost_sensitive_cross_entropy(a, label, 0.3), logit)
    accepted, propensity = torch.tensor([[True, False, True]]), torch.tensor([[0.2, 0.5, 0.9]])
    assert _gradcheck(lambda a: ips_risk(a, propensity, accepted), logit[None])
