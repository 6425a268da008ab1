import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, distributions

from fairall.data.features import Feature, Kind, Schema
from fairall.nn.likelihoods import MAX_LOGIT, MIN_RATE, MixedLikelihood
from tests.conftest import MakePeople


def _gaussian(outputs: Tensor) -> distributions.Distribution:
    eta1, raw = outputs.unbind(-1)
    eta2 = -F.softplus(raw) - MIN_RATE
    return distributions.Normal(-eta1 / (2 * eta2), torch.sqrt(-1 / (2 * eta2)))


def _poisson(outputs: Tensor) -> distributions.Distribution:
    return distributions.Poisson(F.softplus(outputs[..., 0]) + MIN_RATE)


def _bernoulli(outputs: Tensor) -> distributions.Distribution:
    return distributions.Bernoulli(logits=outputs[..., 0])


def _categorical(outputs: Tensor) -> distributions.Distribution:
    return distributions.Categorical(logits=outputs)


# Feature, the values it takes, the same values as torch.distributions codes them, and the distribution.
CASES = {
    "real": (Feature("f", Kind.REAL), [-1.5, 0.0, 2.0], [-1.5, 0.0, 2.0], _gaussian),
    "count": (Feature("f", Kind.COUNT), [0.0, 1.0, 7.0], [0.0, 1.0, 7.0], _poisson),
    "binary": (Feature("f", Kind.BINARY, (1.0, 2.0)), [1.0, 2.0, 1.0], [0.0, 1.0, 0.0], _bernoulli),
    "categorical": (
        Feature("f", Kind.CATEGORICAL, (1.0, 2.0, 4.0)),
        [4.0, 1.0, 2.0],
        [2.0, 0.0, 1.0],
        _categorical,
    ),
}


def log_prob(likelihood: MixedLikelihood, outputs: Tensor, x: Tensor) -> Tensor:
    """Shape (E, B), of outputs (E, B, P), one sample a person, and x (E, B, D)."""
    return likelihood.log_prob(outputs.mT.unsqueeze(-1), x)


@pytest.mark.parametrize("case", CASES)
def test_log_prob_is_that_of_torch_distributions(case: str) -> None:
    feature, values, coded, distribution = CASES[case]
    likelihood = MixedLikelihood(Schema([feature]))
    outputs = 2 * torch.randn(4, 3, likelihood.n_outputs)
    measured = log_prob(likelihood, outputs, torch.tensor(values).expand(4, -1).unsqueeze(-1))
    expected = distribution(outputs).log_prob(torch.tensor(coded))
    torch.testing.assert_close(measured, expected, rtol=1e-5, atol=1e-5)


def test_kinds_add_up(schema: Schema, people: MakePeople) -> None:
    likelihood = MixedLikelihood(schema)
    assert likelihood.n_outputs == 2 + 1 + 1 + 3 + 4
    x = people(20).x.unsqueeze(0)
    outputs = torch.randn(1, 20, likelihood.n_outputs)
    blocks = [[0, 1], [2], [3], [4, 5, 6], [7, 8, 9, 10]]
    parts = [
        log_prob(MixedLikelihood(Schema([feature])), outputs[..., block], x[..., i : i + 1])
        for i, (feature, block) in enumerate(zip(schema, blocks, strict=True))
    ]
    torch.testing.assert_close(log_prob(likelihood, outputs, x), sum(parts))


def test_samples_are_averaged(schema: Schema, people: MakePeople) -> None:
    likelihood = MixedLikelihood(schema)
    x = people(10).x.expand(2, -1, -1)
    outputs = torch.randn(2, likelihood.n_outputs, 10, 5)
    singly = [likelihood.log_prob(outputs[..., k : k + 1], x) for k in range(5)]
    torch.testing.assert_close(likelihood.log_prob(outputs, x), torch.stack(singly).mean(0))


def test_gradients_by_finite_differences(schema: Schema, people: MakePeople) -> None:
    likelihood = MixedLikelihood(schema)
    x = people(6).x.double().view(2, 3, -1)
    outputs = torch.randn(2, likelihood.n_outputs, 3, 4, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda outputs: likelihood.log_prob(outputs, x), outputs)


def test_extreme_outputs_stay_finite_and_so_do_their_gradients(schema: Schema, people: MakePeople) -> None:
    likelihood = MixedLikelihood(schema)
    for size in (-1e4, 1e4):
        outputs = torch.full((1, likelihood.n_outputs, 5, 2), size, requires_grad=True)
        value = likelihood.log_prob(outputs, people(5).x.unsqueeze(0))
        (gradient,) = torch.autograd.grad(value.sum(), outputs)
        assert value.isfinite().all()
        assert gradient.isfinite().all()


def test_the_gradient_of_a_logit_beyond_the_bound_is_that_at_the_bound() -> None:
    likelihood = MixedLikelihood(Schema([CASES["categorical"][0]]))
    x = torch.full((1, 1, 1), 4.0)

    def gradient(size: float) -> Tensor:
        outputs = torch.tensor([size, 0.0, -size]).view(1, 3, 1, 1).requires_grad_()
        return torch.autograd.grad(likelihood.log_prob(outputs, x).sum(), outputs)[0]

    assert gradient(MAX_LOGIT)[0, 2] == 1.0
    torch.testing.assert_close(gradient(100.0), gradient(MAX_LOGIT))


def test_reconstruction_gives_means_and_modes(schema: Schema) -> None:
    likelihood = MixedLikelihood(schema)
    outputs = torch.tensor([2.0, 0.5, 3.0, -1.0, 0.0, 5.0, 1.0, 0.0, 0.0, 1.0, 9.0])
    restored = likelihood.reconstruct(outputs.view(1, -1, 1))[0, 0]
    mean = _gaussian(outputs[:2])
    torch.testing.assert_close(restored[0], mean.mean)
    torch.testing.assert_close(restored[1], F.softplus(torch.tensor(3.0)) + MIN_RATE)
    assert restored[2:].tolist() == [1.0, 2.0, 5.0]
