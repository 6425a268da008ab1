"""Compiled functions of tensors of E replicates, and the compiled twins of trainings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairall.nn.native.calls import kernels, over_replicates, takes
from fairall.storage.checkpoint import Stateful

FEW = 256  # rows whose sums over trees take less time than loading the compiled functions


def outputs(layers: Sequence[Tensor], x: Tensor) -> Tensor:
    """Outputs of nets with ReLUs for x (E, in, B), without autograd, shape (E, out, B).

    `layers` are weights (E, in, out) and biases (E, 1, out) in turn.

    Raises:
        ValueError: where the shapes of x and the first weights do not fit.
    """
    expected = (*layers[0].shape[:2], x.shape[-1])
    if x.shape != expected:  # compiled functions do not check indices
        raise ValueError(f"inputs of the nets have shape {tuple(x.shape)} in place of {expected}")
    theta, sizes = _flat(layers)
    computed = x.new_empty(len(x), int(sizes[-1]), x.shape[2])
    _over_replicates(lambda theta, *some: kernels().apply(theta, sizes, *some), theta, x, computed)
    return computed


def average_probability(layers: Sequence[Tensor], loc: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
    """`fairall.nn.stacked.average_probability`, without autograd, for a net's weights and biases.

    Noise that people share (`Tensor.expand`) is not copied for each.
    """
    theta, sizes = _flat(layers)
    averages = loc.new_empty(loc.shape[:3])
    if noise.stride(1) == 0:
        noise = noise[:, :1]
    arrays = theta, loc, scale, noise, averages
    _over_replicates(lambda theta, *some: kernels().average(theta, sizes, *some), *arrays)
    return averages


def tree_sums(feature: Tensor, bound: Tensor, child: Tensor, value: Tensor, x: Tensor) -> Tensor:
    """Sums of the leaves that rows x (E, B, F) end at, shape (E, B), float64; nodes as `BoostedTrees` has.

    Both ways add the trees in their order, so that sums do not depend on the number of rows.
    """
    if x.shape[:2].numel() > FEW and takes(x):
        sums = x.new_empty(x.shape[:2], dtype=torch.float64)
        _over_replicates(kernels().sum_trees, feature, bound, child, value, x, sums)
        return sums
    feature, child = feature.long(), child.long().flatten(-2)
    trees = feature.shape[1]
    node = torch.zeros(len(x), trees, x.shape[1], dtype=torch.long)
    for _ in range(feature.shape[2] // 2):  # no tree is deeper
        asked = x.unsqueeze(1).expand(-1, trees, -1, -1).gather(3, feature.gather(2, node).unsqueeze(-1))
        right = ~(asked.squeeze(-1) <= bound.gather(2, node))
        node = child.gather(2, 2 * node + right.long())
    return value.gather(2, node).cumsum(1)[:, -1]


def fill(kind: str, out: Tensor, state: Tensor) -> None:
    """Fill `out` (rows, n) with numbers of a kind by a seed's key and counter; see `fairall.nn.noise`."""
    numbers = out if kind == "stratified" else out.view(-1)
    getattr(kernels(), kind)(state.numpy().view(np.uint64), numbers.numpy())


class Updated(Stateful):
    """Parameters of E replicates and Adam's moments, a vector per replicate.

    The parameters become views of the vectors, which the compiled functions update.

    Attributes:
        theta: the parameters, shape (E, n).
        moments: Adam's first and second ones, shape (2, E, n).
        steps: number of updates.
    """

    kept = ("moments", "steps")

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters, (self.theta, _) = parameters, _flat(parameters)
        parts = self.theta.split([parameter[0].numel() for parameter in parameters], dim=1)
        for parameter, values in zip(parameters, parts, strict=True):
            parameter.data = values.view(parameter.shape)
        self.moments = torch.zeros(2, *self.theta.shape)
        self.steps = torch.zeros((), dtype=torch.long)

    @property
    def vectors(self) -> tuple[Tensor, ...]:
        """Parameters, first and second moments, each of shape (E, n).

        Raises:
            RuntimeError: where the parameters no longer share the memory that is trained.
        """
        if self._parameters[0].data_ptr() != self.theta.data_ptr():
            raise RuntimeError("parameters that are trained were copied or moved: build the learner anew")
        return self.theta, *self.moments


class Phase1Epochs(Stateful):
    """`fairall.models.phase1.Phase1Epochs` compiled; a seed that is done keeps its weights and its loss."""

    kept = ("losses",)

    def __init__(self, vae: Any, pool: Any, config: Any) -> None:
        nets = vae.encoder.weights_and_biases(), vae.decoder.weights_and_biases()
        self.model = Updated([*nets[0], *nets[1]])
        self.losses = torch.full((len(self.model.theta),), torch.nan)
        self.vae, self._config, self._tables = vae, config, _tables(vae, pool)
        sizes = tuple(_flat(net)[1] for net in nets)
        scalars = np.float32(config.beta), np.float32(vae.min_scale)
        self._objective = vae.likelihood.layout, sizes, *scalars

    @staticmethod
    def fits(vae: Any, pool: Any, config: Any) -> bool:
        """Whether these are of float32 on the CPU."""
        return takes(pool.x, *vae.parameters())

    def epoch(self, order: Tensor, noise: Tensor, done: Tensor, learning_rate: float) -> Tensor:
        """Update the VAE on every minibatch of an epoch; the losses, shape (E,). See the definition."""
        size = self._config.batch_size
        self._epoch(order, noise, self.losses, self._tables, size, learning_rate, done.tolist())
        self.model.steps += -(-order.shape[1] // size)
        return self.losses.clone()

    def loss(self, people: Any, noise: Tensor) -> Tensor:
        """−K of other people, shape (E,)."""
        n_seeds, n_people = noise.shape[:2]
        losses, everybody = torch.empty(n_seeds), torch.arange(n_people).expand(n_seeds, -1)
        self._epoch(everybody, noise, losses, _tables(self.vae, people), n_people, learning_rate=0.0)
        return losses

    def _epoch(
        self,
        order: Tensor,
        noise: Tensor,
        losses: Tensor,
        tables: Sequence[Tensor],
        batch_size: int,
        learning_rate: float,
        left_out: Sequence[bool] | None = None,
    ) -> None:
        """Call the compiled epoch, which fills `losses`, and updates nothing at a learning rate of 0."""
        steps = int(self.model.steps)

        def some(*arrays: np.ndarray) -> None:
            vectors, own, people = arrays[:3], arrays[3:6], arrays[6:]
            kernels().phase1_epoch(vectors, steps, learning_rate, *own, batch_size, people, *self._objective)

        given = *self.model.vectors, order, noise, losses
        _over_replicates(some, *given, shared=tables, left_out=left_out)


class Phase2Epochs(Stateful):
    """`fairall.models.latent_learner.Phase2Epochs` compiled, from the same random numbers."""

    def __init__(self, learner: Any) -> None:
        model, policy = learner.model, learner.policy_net
        nets = [net.weights_and_biases() for net in (model.vae.encoder, model.vae.decoder, model.classifier)]
        self.model = Updated([parameter for net in nets for parameter in net])
        self.policy = None if policy is None else Updated(policy.weights_and_biases())
        self._nets = tuple(_flat(net)[1] for net in nets)
        self._policy = None if policy is None else _flat(policy.weights_and_biases())[1]
        self._rate = learner.config.learning_rate

    @staticmethod
    def fits(learner: Any) -> bool:
        """Whether the loss is described, and the nets are of float32 on the CPU."""
        return learner.objective() is not None and takes(*learner.parameters())

    def model_epoch(self, learner: Any, decided: Any) -> float:
        """Update VAE and classifier on every minibatch; see the definition."""
        losses, shared = torch.empty(len(decided.s)), (learner.model.vae.likelihood.layout, self._nets)
        self._epoch(kernels().model_epoch, self.model, learner, decided, (losses,), shared)
        return losses.mean().item()

    def policy_epoch(self, learner: Any, decided: Any) -> None:
        """Update the policy net, if there is one, on every minibatch."""
        if self.policy is not None:
            own, shared = (self.model.theta, learner.model.vae.frames), (self._nets, self._policy)
            self._epoch(kernels().policy_epoch, self.policy, learner, decided, own, shared)

    def _epoch(
        self,
        compute: Callable[..., None],
        updated: Updated,
        learner: Any,
        decided: Any,
        of_replicates: tuple[Tensor, ...],
        shared: tuple[Any, ...],
    ) -> None:
        """Call a compiled epoch with what all have in common, and with more arrays and other arguments."""
        steps, order = int(updated.steps), learner.streams.permutations(decided.s.shape[1])
        plain = learner.objective()
        objective = tuple(np.float32(v) if isinstance(v, float) else v for v in plain)

        def some(*arrays: np.ndarray) -> None:
            vectors, (state, order), rest = arrays[:3], arrays[3:5], arrays[5:]
            people, own = rest[: -len(of_replicates)], rest[-len(of_replicates) :]
            streams, rate = state.view(np.uint64), self._rate
            compute(vectors, steps, rate, streams, order, people, *own, *shared, objective)

        tables = learner.tables(decided)
        _over_replicates(some, *updated.vectors, learner.noise.state, order, *tables, *of_replicates)
        updated.steps += plain.n_batches


def _tables(vae: Any, people: Any) -> tuple[Tensor, ...]:
    """Inputs of the encoder, features by kind, and log h(x), of each replicate's people or of one for all."""
    x, s = (values if people.s.dim() > 1 else values.unsqueeze(0) for values in (people.x, people.s))
    tables = vae.encoder_input(x, s).mT, x[..., vae.likelihood.columns], vae.likelihood.log_base(x)
    return tuple(table.contiguous() for table in tables)


def _over_replicates(
    call: Callable[..., None],
    *stacked: Tensor,
    shared: Sequence[Tensor] = (),
    left_out: Sequence[bool] | None = None,
) -> None:
    """`over_replicates` of a call with the arrays of some replicates; contiguous tensors are written to.

    The arrays `shared` follow, which have a row for each replicate or one for all.
    """
    arrays = [tensor.detach().contiguous().numpy() for tensor in (*stacked, *shared)]
    n = len(arrays[0])

    def some(rows: Any) -> None:
        call(*(array[rows] if len(array) == n else array for array in arrays))

    over_replicates(some, n, left_out)


def _flat(layers: Sequence[Tensor]) -> tuple[Tensor, np.ndarray]:
    """Parameters of each replicate as one vector, shape (E, n), and the sizes of the layers."""
    theta = torch.cat([layer.detach().flatten(1) for layer in layers], dim=1)
    return theta, np.array([layers[0].shape[1], *(bias.shape[2] for bias in layers[1::2])])


def fastest(definition: type[Any], *given: Any) -> Any:
    """An object of a class that trains nets, or of its compiled twin of the same name if it takes these."""
    twin = globals()[definition.__name__]
    return (twin if twin.fits(*given) else definition)(*given)
