"""Compiled functions of tensors of E replicates, two of them differentiable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

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


def fill(kind: str, out: Tensor, state: Tensor) -> None:
    """Fill `out` (rows, n) with numbers of a kind by a seed's key and counter; see `fairall.nn.noise`."""
    draw = {"uniform": kernels().uniforms, "normal": kernels().normals, "stratified": kernels().stratified}[kind]
    own = out.numpy()
    draw(_streams(state), own if kind == "stratified" else own.reshape(-1))


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
        (_, of_encoder), (_, of_decoder) = _flat(encoder), _flat(decoder)
        self.theta = _joined([*encoder, *decoder])
        self.batch_size = batch_size
        self.mean, self.square = torch.zeros_like(self.theta), torch.zeros_like(self.theta)
        self.steps = torch.zeros((), dtype=torch.long)
        self.loss = torch.full((len(self.theta),), torch.nan)
        self.people = (
            (given[0].contiguous().numpy(), x[:, likelihood.columns].T.contiguous().numpy()),
            likelihood.log_base(x.unsqueeze(0))[0].contiguous().numpy(),
            likelihood.layout,
            of_encoder,
            of_decoder,
        )
        # A minibatch is decoded in equal parts, of which the products are small (see `columns_of`).
        n_parts = -(-min(batch_size, len(x)) * n_samples // columns_of(of_decoder))
        columns = -(-min(batch_size, len(x)) // n_parts // 16) * 16 * n_samples
        self.training = columns, batch_size, learning_rate, np.float32(beta), np.float32(min_scale)

    def epoch(self, order: Tensor, noise: Tensor, done: Tensor) -> Tensor:
        """Like `TorchEpochs.epoch`, but a finished seed keeps its weights and its loss."""
        steps = int(self.steps)

        def some(theta: np.ndarray, mean: np.ndarray, square: np.ndarray, *arrays: np.ndarray) -> None:
            order, noise, loss = arrays
            kernels().phase1_epoch(
                theta, mean, square, steps, order, noise, *self.people, *self.training, loss
            )

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


class Objective(NamedTuple):
    """The loss of Phase II and of the policy net, as compiled functions take it.

    Attributes:
        n_elbo: samples L of an ELBO.
        n_kl: samples K of the KL term of U.
        unlabelled: whether U is part of the loss.
        trains_classifier: whether R is.
        through_classifier: whether U sends a gradient into the classifier.
        density: whether the KL term is `mixture_kl`, and not `cdf_mixture_kl`.
        hard: whether targets of the policy net are thresholded, and not drawn.
    """

    n_batches: int
    n_elbo: int
    n_kl: int
    stratified: bool
    dropout: np.float32
    learning_rate: float
    alpha: np.float32
    beta: np.float32
    cost: np.float32
    min_scale: np.float32
    unlabelled: bool
    trains_classifier: bool
    through_classifier: bool
    density: bool
    hard: bool
    cost_sensitive: bool


class Phase2Epochs:
    """Epochs of Phase II of E models and policy nets by Adam, `TorchPhase2` in `fairall.models` compiled.

    The nets' parameters become views of one vector per replicate, which the compiled functions update.

    Args:
        encoder: weights and biases of E encoders.
        decoder: of E decoders.
        classifier: of E classifiers.
        policy: of E policy nets; empty without one.
        head: number of the policy's targets, see `policy_epoch`.
        frame: signed permutations of the latent axes, shape (E, Z, Z).
    """

    def __init__(
        self,
        nets: Sequence[Sequence[Tensor]],
        policy: Sequence[Tensor],
        likelihood: MixedLikelihood,
        frame: Tensor,
        noise: Tensor,
        objective: Objective,
        head: int,
    ) -> None:
        self.likelihood, self.frame, self.noise, self.objective = likelihood, frame, noise, objective
        self.head = head
        self.sizes = tuple(_flat(net)[1] for net in nets)
        self.theta = _joined([parameter for net in nets for parameter in net])
        self.policy_sizes = _flat(policy)[1] if policy else None
        self.policy_theta = _joined(policy) if policy else None
        self.start()

    def start(self) -> None:
        """Forget Adam's moments."""
        self.moments = torch.zeros(2, *self.theta.shape)
        policy = self.theta[:, :0] if self.policy_theta is None else self.policy_theta
        self.policy_moments = torch.zeros(2, *policy.shape)
        self.steps = torch.zeros(2, dtype=torch.long)

    def model_epoch(self, order: Tensor, people: Sequence[Tensor]) -> Tensor:
        """Update VAE and classifier on every minibatch; returns the loss of the last, shape (E,)."""
        loss = torch.empty(len(order))
        steps, o = int(self.steps[0]), self.objective
        columns = columns_of(self.sizes[1])

        def some(*arrays: np.ndarray) -> None:
            theta, mean, square, noise, *rest, loss = arrays
            kernels().model_epoch(
                theta, mean, square, steps, noise.view(np.uint64), *rest, self.likelihood.layout, self.sizes,
                columns, o, loss,
            )  # fmt: skip

        _over_replicates(some, self.theta, *self.moments, self.noise, order, *people, loss)
        self.steps[0] += o.n_batches
        return loss

    def policy_epoch(self, order: Tensor, people: Sequence[Tensor]) -> None:
        """Update the policy net on every minibatch."""
        steps, o = int(self.steps[1]), self.objective

        def some(*arrays: np.ndarray) -> None:
            theta, mean, square, noise, *rest = arrays
            kernels().policy_epoch(
                theta, mean, square, steps, noise.view(np.uint64), *rest, self.sizes, self.policy_sizes, o,
                self.head,
            )  # fmt: skip

        _over_replicates(
            some, self.policy_theta, *self.policy_moments, self.noise, order, *people, self.theta, self.frame
        )
        self.steps[1] += o.n_batches

    def state_dict(self) -> dict[str, Any]:
        """Adam's moments and numbers of updates."""
        return {"moments": self.moments, "policy_moments": self.policy_moments, "steps": self.steps}

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


def _streams(state: Tensor) -> np.ndarray:
    """Keys and counters of seeds as compiled functions take them."""
    return state.numpy().view(np.uint64)


def _joined(parameters: Sequence[Tensor]) -> Tensor:
    """Make parameters views of one vector per replicate, shape (E, n), and return it."""
    theta, _ = _flat(parameters)
    parts = theta.split([parameter[0].numel() for parameter in parameters], dim=1)
    for parameter, values in zip(parameters, parts, strict=True):
        parameter.data = values.view(parameter.shape)
    return theta


def _flat(layers: Sequence[Tensor]) -> tuple[Tensor, np.ndarray]:
    """Parameters of each replicate as one vector, shape (E, n), and the sizes of the layers."""
    theta = torch.cat([layer.detach().flatten(1) for layer in layers], dim=1)
    return theta, np.array([layers[0].shape[1], *(bias.shape[2] for bias in layers[1::2])])
