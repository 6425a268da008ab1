import numpy as np
import pytest
import torch
from scipy import stats

from fairall.config.schema import KL
from fairall.models.elbo import mixture_kl

MIXTURES = [
    (0.3, [[-1.0], [2.0]], [[0.5], [0.8]]),
    (0.5, [[0.0], [0.0]], [[1.0], [1.0]]),
    (0.9, [[0.5], [0.4]], [[0.2], [1.5]]),
    (0.6, [[-1.0, 0.5], [1.0, -0.5]], [[0.6, 0.9], [0.7, 0.4]]),
]
"""q(ũ = 1), locations and scales of both components."""


@pytest.mark.parametrize(("good", "loc", "scale"), MIXTURES)
def test_mixture_kl_is_the_quadrature(good: float, loc: list, scale: list) -> None:
    locations, axis = np.array(loc), np.linspace(-8, 8, 801)
    z = np.stack(np.meshgrid(*[axis] * locations.shape[1], indexing="ij"), axis=-1)
    parts = [stats.norm.pdf(z, *of_one).prod(-1) for of_one in zip(loc, scale, strict=True)]
    density = (1 - good) * parts[0] + good * parts[1] + 1e-300
    ratio = np.log(density / stats.norm.pdf(z).prod(-1))
    exact = (density * ratio).sum() * (axis[1] - axis[0]) ** locations.shape[1]
    noise = torch.randn(2, locations.shape[1], 200_000, generator=torch.Generator().manual_seed(0))
    estimate = mixture_kl(torch.logit(torch.tensor(good)), torch.tensor(loc), torch.tensor(scale), noise)
    assert estimate.item() == pytest.approx(exact, abs=0.01)


def test_the_term_of_the_authors_code_is_its_sum_over_the_samples_of_each_person() -> None:
    logit, loc, scale = torch.randn(3), torch.randn(3, 2, 4), torch.rand(3, 2, 4) + 0.1
    noise = torch.randn(3, 2, 4, 5)
    shares = torch.stack([1 - logit.sigmoid(), logit.sigmoid()], -1).numpy()
    z = (loc[..., None] + scale[..., None] * noise).numpy()  # of 3 people, both ũ, 4 axes and 5 samples
    below = [
        shares[:, u, None, None, None] * stats.norm.cdf(z, loc[:, [u], :, None], scale[:, [u], :, None])
        for u in (0, 1)
    ]
    terms = np.logaddexp(*below) - stats.norm.logpdf(z)
    expected = (shares[..., None, None] * terms / 5).sum((1, 2, 3))
    np.testing.assert_allclose(mixture_kl(logit, loc, scale, noise, KL.cdf), expected, rtol=1e-4)


@pytest.mark.parametrize("kl", KL)
def test_a_certain_classifier_and_posteriors_that_are_points_leave_everything_finite(kl: KL) -> None:
    given = torch.tensor([-200.0, 0.0, 200.0]), torch.randn(3, 2, 1), torch.full((3, 2, 1), 1e-6)
    for parameter in given:
        parameter.requires_grad_()
    value = mixture_kl(*given, torch.randn(3, 2, 1, 5), kl)
    assert value.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(value.sum(), given))
