"""Likelihoods of mixed features against torch.distributions."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import distributions

from fairall.data.features import Feature, Kind, Schema
from fairall.nn.likelihoods import MAX_LOGIT, MIN_RATE, MixedLikelihood
from tests.conftest import MakePeople


@pytest.fixture
def likelihood(schema: Schema) -> MixedLikelihood:
    """That of size (4 codes), colour (3), member, visits and height, in this order."""
    return MixedLikelihood(Schema(schema[::-1]))


def test_it_is_the_sum_of_torch_distributions_averaged_over_samples(
    likelihood: MixedLikelihood, people: MakePeople
) -> None:
    x = people(20).x.flip(-1).expand(2, -1, -1)
    assert likelihood.n_outputs == 2 + 1 + 1 + 4 + 3
    outputs = 2 * torch.randn(2, likelihood.n_outputs, 20, 5)
    eta1, raw, rate, member, *others = outputs.unbind(1)
    precision = 2 * (F.softplus(raw) + MIN_RATE)
    rate, logits = F.softplus(rate) + MIN_RATE, torch.stack(others, -1)
    size, colour, binary, visits, height = x.unsqueeze(-1).unbind(2)
    expected = distributions.Normal(eta1 / precision, precision**-0.5).log_prob(height)
    expected = expected + distributions.Poisson(rate).log_prob(visits)
    expected = expected + distributions.Bernoulli(logits=member).log_prob(binary - 1)
    expected = expected + distributions.Categorical(logits=logits[..., 4:]).log_prob(colour - 1)
    size_code = torch.where(size == 5, 3.0, size)
    expected = expected + distributions.Categorical(logits=logits[..., :4]).log_prob(size_code)
    torch.testing.assert_close(likelihood.log_prob(outputs, x), expected.mean(-1), rtol=1e-5, atol=1e-5)
    restored = likelihood.reconstruct(outputs[..., 0]).unbind(-1)
    most = logits[:, :, 0, :4].argmax(-1), logits[:, :, 0, 4:].argmax(-1)
    codes = torch.tensor([0.0, 1.0, 2.0, 5.0])[most[0]], 1.0 + most[1], 1.0 + (member[..., 0] > 0)
    torch.testing.assert_close(restored, (*codes, rate[..., 0], (eta1 / precision)[..., 0]))


@pytest.mark.parametrize("size", [-1e4, 1e4])
def test_extreme_outputs_stay_finite_and_so_do_their_gradients(
    size: float, likelihood: MixedLikelihood, people: MakePeople
) -> None:
    outputs = torch.full((1, likelihood.n_outputs, 5, 2), size, requires_grad=True)
    value = likelihood.log_prob(outputs, people(5).x.flip(-1).unsqueeze(0))
    (gradient,) = torch.autograd.grad(value.sum(), outputs)
    assert value.isfinite().all()
    assert gradient.isfinite().all()


def test_the_gradient_of_a_logit_beyond_the_bound_is_that_at_the_bound() -> None:
    likelihood = MixedLikelihood(Schema([Feature("f", Kind.CATEGORICAL, (1.0, 2.0, 4.0))]))
    outputs = torch.tensor([[MAX_LOGIT, 0.0, -MAX_LOGIT], [100.0, 0.0, -100.0]]).view(2, 3, 1, 1)
    outputs.requires_grad_()
    value = likelihood.log_prob(outputs, torch.full((2, 1, 1), 4.0)).sum()
    at_bound, beyond = torch.autograd.grad(value, outputs)[0]
    assert at_bound[2] == 1.0
    torch.testing.assert_close(beyond, at_bound)
