"""Compiled functions of tensors of E replicates, two of them differentiable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from fairall.nn.likelihoods import MixedLikelihood
from fairall.nn.native.calls import kernels, over_replicates

# Samples of people at once: few enough for a layer's values, its gradient and the next one's to stay in the
# cache. OpenBLAS has faster code for products of up to SMALL multiply-adds.
COLUMNS, FEWEST, SMALL = 240, 80, 1_000_000


def outputs(layers: Sequence[Tensor], x: Tensor) -> Tensor:
    """Outputs of nets with ReLUs for x (E, in, B), without autograd, shape (E, out, B).

    `layers` are weights (E, in, out) and biases (E, 1, out) in turn.
    """
    _check("inputs of the nets", x, (*layers[0].shape[:2], x.shape[-1]))
    theta, sizes = _flat(layers)
    computed = x.new_empty(len(x), int(sizes[-1]), x.shape[2])
    columns = columns_of(sizes)
    _over_replicates(lambda *some: kernels().apply(some[0], sizes, *some[1:], columns), theta, x, computed)
    return computed


def average_probability(layers: Sequence[Tensor], loc: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
    """`fairall.models.policy_heads.average_acceptance`, without autograd, for a net's weights and biases.

    Noise that people share (`Tensor.expand`) is not copied for each.
    """
    theta, sizes = _flat(layers)
    averages = loc.new_empty(loc.shape[:3])
    if noise.stride(1) == 0:
        noise = noise[:, :1]
    _over_replicates(
        lambda theta, *some: kernels().average(theta, sizes, *some, columns_of(sizes)),
        *(theta, loc, scale, noise, averages),
    )
    return averages


def log_likelihood(
    layers: Sequence[Tensor],
    likelihood: MixedLikelihood,
    given: Tensor,
    x: Tensor,
    utility: Tensor | None,
    decision: Tensor | None,
    gradient: Tensor | None,
) -> Tensor:
    """`ConditionalVAE.log_likelihood` by a decoder's layers and inputs, in which it is differentiable once.

    `given` are the decoder's inputs for L samples a person, shape (E, Z + 1, B, L). With the expected
    gradient of the loss in the result, shape (E, B), the decoder goes forward and at once backward, while its
    activations are in the cache; where the gradient turns out to be another one, or is not given, it goes
    forward a second time.
    """
    if not torch.is_grad_enabled():
        return _decoded(likelihood, given, x, utility, decision, layers, None)[0]
    return _LogLikelihood.apply(likelihood, gradient, given, x, utility, decision, *layers)


class _LogLikelihood(Function):
    """`log_likelihood` for autograd."""

    @staticmethod
    def forward(ctx: Any, likelihood: MixedLikelihood, gradient: Tensor | None, *tensors: Tensor) -> Tensor:
        given, x, utility, decision, *layers = tensors
        ctx.likelihood, ctx.expected = likelihood, gradient
        ctx.save_for_backward(*tensors)
        value, *ctx.gradients = _decoded(likelihood, given, x, utility, decision, layers, gradient)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.gradients
        expected = ctx.expected
        if expected is None or not torch.allclose(upstream, expected, rtol=0.0, atol=0.0, equal_nan=True):
            given, x, utility, decision, *layers = ctx.saved_tensors
            _, *gradients = _decoded(ctx.likelihood, given, x, utility, decision, layers, upstream)
        of_given, of_layers = gradients
        return None, None, of_given, None, None, None, *of_layers


@torch.no_grad()
def _decoded(
    likelihood: MixedLikelihood,
    given: Tensor,
    x: Tensor,
    utility: Tensor | None,
    decision: Tensor | None,
    layers: Sequence[Tensor],
    gradient: Tensor | None,
) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The log likelihood, and its gradients times `gradient` in `given` and in `layers`, if that is given."""
    theta, sizes = _flat(layers)
    n_seeds, n_people, n_samples = len(theta), *given.shape[2:]
    _check("inputs of the decoder", given, (n_seeds, int(sizes[0]), n_people, n_samples))
    _check("features", x, (n_seeds, n_people, likelihood.n_features))
    n_utility = n_people if int(sizes[-1]) > likelihood.n_outputs else 0
    weight = x.new_zeros(n_seeds, n_people) if gradient is None else gradient
    utility = weight[:, :0] if utility is None else utility
    decision = torch.ones_like(utility) if decision is None else decision
    _check("gradients", weight, (n_seeds, n_people))
    _check("utilities", utility, (n_seeds, n_utility))
    _check("decisions", decision, (n_seeds, n_utility))
    value, of_theta, of_given = (x.new_empty(one.shape) for one in (weight, theta, given))

    def some(theta: np.ndarray, of_theta: np.ndarray, *arrays: np.ndarray) -> None:
        kernels().decode(
            theta,
            of_theta,
            sizes,
            likelihood.layout,
            *arrays,
            n_samples,
            columns_of(sizes),
            gradient is not None,
        )

    x_by_kind = x.index_select(2, likelihood.columns)
    people = given.flatten(2), of_given.flatten(2), x_by_kind, weight, utility, decision, value
    _over_replicates(some, theta, of_theta, *people)
    parts = of_theta.split([layer[0].numel() for layer in layers], dim=1)
    # Contiguous, as the fused kernel of Adam takes them.
    of_layers = [part.reshape(layer.shape).contiguous() for part, layer in zip(parts, layers, strict=True)]
    return value + likelihood.log_base(x), of_given, of_layers


def mixture_kl(logit: Tensor, loc: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
    """`fairall.models.elbo.mixture_kl` of tensors with dimensions E and B, differentiable once."""
    for name, each in (("locations", loc), ("scales", scale)):
        _check(name, each, (*logit.shape, 2, loc.shape[-1]))
    return _MixtureKL.apply(logit, loc, scale, noise.expand(*loc.shape, -1))


class _MixtureKL(Function):
    """`mixture_kl` for autograd; the gradients are computed with the value."""

    @staticmethod
    def forward(ctx: Any, logit: Tensor, loc: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
        value, of_logit = logit.new_empty(2, *logit.shape)
        of_loc, of_scale = loc.new_empty(2, *loc.shape)
        given = logit, loc, scale, noise
        _over_replicates(kernels().mixture_kl, *given, value, of_logit, of_loc, of_scale)
        ctx.gradients = of_logit, of_loc, of_scale
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        of_logit, of_loc, of_scale = ctx.gradients
        per_person = upstream[..., None, None]
        return upstream * of_logit, per_person * of_loc, per_person * of_scale, None


class Phase1Epochs:
    """Training of E VAEs by Adam on minibatches, `TorchEpochs` in `fairall.models.phase1` compiled.

    The nets' parameters become views of one vector per replicate, which the compiled functions update.

    Args:
        encoder: weights and biases of E encoders of inputs, s the last, to location and scale before the
            softplus.
        decoder: those of E decoders of z and s.
        given: inputs of the encoder, shape (1, inputs, N).
        x: features, shape (N, D).
    """

    def __init__(
        self,
        encoder: Sequence[Tensor],
        decoder: Sequence[Tensor],
        likelihood: MixedLikelihood,
        given: Tensor,
        x: Tensor,
        *,
        batch_size: int,
        n_samples: int,
        learning_rate: float,
        beta: float,
        min_scale: float,
    ) -> None:
        parameters = [*encoder, *decoder]
        (_, of_encoder), (_, of_decoder) = _flat(encoder), _flat(decoder)
        self.theta, _ = _flat(parameters)
        parts = self.theta.split([parameter[0].numel() for parameter in parameters], dim=1)
        for parameter, values in zip(parameters, parts, strict=True):
            parameter.data = values.view(parameter.shape)
        self.batch_size = batch_size
        self.mean, self.square = torch.zeros_like(self.theta), torch.zeros_like(self.theta)
        self.steps = torch.zeros((), dtype=torch.long)
        self.loss = torch.full((len(self.theta),), torch.nan)
        self.people = (
            given[0].T.contiguous().numpy(),
            x[:, likelihood.columns].contiguous().numpy(),
            likelihood.log_base(x.unsqueeze(0))[0].contiguous().numpy(),
            likelihood.layout,
            of_encoder,
            of_decoder,
        )
        # A minibatch is computed in equal parts, of which the products are small (see `columns_of`).
        most = min(columns_of(of_encoder), columns_of(of_decoder))
        n_parts = -(-min(batch_size, len(x)) * n_samples // most)
        at_once = -(-min(batch_size, len(x)) // n_parts // 16) * 16
        self.training = at_once, batch_size, learning_rate, np.float32(beta), np.float32(min_scale)

    def epoch(self, order: Tensor, noise: Tensor, done: Tensor) -> Tensor:
        """Like `TorchEpochs.epoch`, but a finished seed keeps its weights and its loss."""
        steps = int(self.steps)

        def some(theta: np.ndarray, mean: np.ndarray, square: np.ndarray, *arrays: np.ndarray) -> None:
            order, noise, loss = arrays
            kernels().epochs(theta, mean, square, steps, order, noise, *self.people, *self.training, loss)

        _over_replicates(
            some, self.theta, self.mean, self.square, order, noise, self.loss, left_out=done.tolist()
        )
        self.steps += -(-order.shape[1] // self.batch_size)
        return self.loss.clone()

    def state_dict(self) -> dict[str, Any]:
        """Adam's moments and number of updates, and the losses of the last epoch."""
        return {"mean": self.mean, "square": self.square, "steps": self.steps, "loss": self.loss}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        for name, own in self.state_dict().items():
            own.copy_(state[name])


def columns_of(sizes: np.ndarray) -> int:
    """Samples of people that nets with these layers take at once."""
    small = SMALL // int((sizes[:-1] * sizes[1:]).max()) // 16 * 16
    return min(COLUMNS, small) if small >= FEWEST else COLUMNS


def _over_replicates(
    call: Callable[..., None], *stacked: Tensor, left_out: Sequence[bool] | None = None
) -> None:
    """`over_replicates` of a call with the arrays of some replicates; contiguous tensors are written to."""
    arrays = [tensor.detach().contiguous().numpy() for tensor in stacked]
    over_replicates(lambda some: call(*(array[some] for array in arrays)), len(arrays[0]), left_out)


def _check(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    """Check shapes, since compiled functions do not check indices."""
    if tensor.shape != shape:
        raise ValueError(f"{name} have shape {tuple(tensor.shape)} in place of {shape}")


def _flat(layers: Sequence[Tensor]) -> tuple[Tensor, np.ndarray]:
    """Parameters of each replicate as one vector, shape (E, n), and the sizes of the layers."""
    theta = torch.cat([layer.detach().flatten(1) for layer in layers], dim=1)
    return theta, np.array([layers[0].shape[1], *(bias.shape[2] for bias in layers[1::2])])
