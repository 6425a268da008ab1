"""What is slow, compiled by numba: functions of tensors of E replicates, and the twins of trainings.

`takes` is the switch. `fairall.nn` asks it and computes in torch otherwise: `stacked.evaluated`,
`stacked.average_probability`, `noise.Noise`; learners ask `fastest`. Where numba is missing or switched off
(NUMBA_DISABLE_JIT=1) they give the same to rounding, in several times the time; tests compare both.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairall.errors import FairAllError
from fairall.nn.objective import Objective
from fairall.runtime.process import limit_blas, numba_version, over_replicates
from fairall.storage.checkpoint import Stateful

_announced: set[str] = set()


def takes(*tensors: Tensor) -> bool:
    """Whether there are compiled functions for these tensors: with numba, of float32 on the CPU."""
    return all(t.dtype == torch.float32 and t.device.type == "cpu" for t in tensors) and kernels() is not None


@functools.cache
def kernels() -> Any:
    """The module of compiled functions; None where numba is missing or switched off.

    Raises:
        FairAllError: if numba is there but cannot be imported.
    """
    if numba_version() is None:
        return None
    try:
        from numba.core import event

        from fairall.nn import kernels as compiled
    except ImportError as error:
        raise FairAllError(
            f"numba cannot be imported ({error}): install another version, or set NUMBA_DISABLE_JIT=1"
        ) from error

    dispatchers = [of for of in vars(compiled).values() if hasattr(of, "py_func")]
    functions = sum("inline" not in of.targetoptions for of in dispatchers)

    class Compilation(event.Listener):
        """Says so, and keeps the garbage collector, which takes a tenth of the time, from running."""

        def __init__(self) -> None:
            self.collects: list[bool] = []  # before each compilation that has not ended, inner ones last

        def on_start(self, event: Any) -> None:
            self.collects.append(gc.isenabled())
            gc.disable()
            function = event.data["dispatcher"].py_func
            if function.__module__ == compiled.__name__:
                announce(function.__name__, functions)

        def on_end(self, event: Any) -> None:
            if self.collects.pop():
                gc.enable()

    event.register("numba:compile", Compilation())
    limit_blas()
    return compiled


def announce(function: str, most: int) -> None:
    """Print that functions are being compiled, with the first one, and how far that is with every tenth.

    Args:
        function: name of the one that begins.
        most: number of all functions, of which a run may need fewer.
    """
    if function in _announced:
        return
    _announced.add(function)
    if len(_announced) == 1:
        told = "compiling, once for this installation ..."
    elif len(_announced) % 10 == 0:
        told = f"compiling function {len(_announced)} of at most {most} ..."
    else:
        return
    print(f"fairall: {told}", file=sys.stderr, flush=True)


@functools.cache
def processor() -> str:
    """The processor and the BLAS as far as rounding depends on them; `none` without compiled functions."""
    if kernels() is None:
        return "none"
    from llvmlite.binding import get_host_cpu_features, get_host_cpu_name

    return f"{get_host_cpu_name()} {get_host_cpu_features().flatten()} {blas()}"


def blas() -> str:
    """The BLAS of numpy and of scipy as far as rounding depends on it."""
    import scipy.special  # noqa: F401 - loads scipy's, as compiled functions do: the same in every process
    from threadpoolctl import threadpool_info

    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return str(sorted({f"{library['version']} {library.get('architecture')}" for library in libraries}))


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

    def epoch(
        self,
        compute: Callable[..., None],
        learning_rate: float,
        streams: Tensor,
        order: Tensor,
        bounds: np.ndarray,
        tables: Sequence[Tensor],
        own: Sequence[Tensor],
        shared: Sequence[Any],
        objective: Objective,
        left_out: Sequence[bool] | None = None,
    ) -> None:
        """Call a compiled epoch, which makes an update after each minibatch, but none at a rate of 0.

        Its arguments are described in `kernels.model_epoch`: `own` are arrays of the replicates beside
        `streams` and `order`, `shared` what all have in common. The replicates `left_out` stay as they are.
        """
        steps, n_own = int(self.steps), 5 + len(own)

        def some(*arrays: np.ndarray) -> None:
            vectors, (state, order), people = arrays[:3], arrays[3:5], arrays[n_own:]
            given = vectors, steps, learning_rate, state.view(np.uint64), order, people, *arrays[5:n_own]
            compute(*given, *shared, objective.numbers, bounds)

        given = *self.vectors, streams, order, *own
        _over_replicates(some, *given, shared=tables, left_out=left_out)
        if learning_rate > 0.0:
            self.steps += len(bounds) - 1


class Phase1Epochs(Stateful):
    """`fairall.models.phase1.Phase1Epochs` compiled; a seed that is done keeps its weights and its loss."""

    kept = ("losses",)

    def __init__(self, vae: Any, pool: Any, config: Any) -> None:
        nets = vae.encoder.weights_and_biases(), vae.decoder.weights_and_biases()
        self.model = Updated([*nets[0], *nets[1]])
        self.losses = torch.full((len(self.model.theta),), torch.nan)
        self.vae, self.batch_size, self._tables = vae, config.batch_size, _unlabelled(vae, pool)
        self._nets = *(_flat(net)[1] for net in nets), np.zeros(2, np.int64)  # without a classifier
        self._objective = Objective(beta=float(config.beta), min_scale=vae.min_scale)

    @staticmethod
    def fits(vae: Any, pool: Any, config: Any) -> bool:
        """Whether these are of float32 on the CPU."""
        return takes(pool.x, *vae.parameters())

    def epoch(self, order: Tensor, noise: Tensor, done: Tensor, learning_rate: float) -> Tensor:
        """Update the VAE on every minibatch of an epoch; the losses, shape (E,). See the definition."""
        bounds = np.append(np.arange(0, order.shape[1], self.batch_size), order.shape[1])
        losses = self._losses(self._tables, order, noise, bounds, learning_rate, done.tolist())
        self.losses = torch.where(done, self.losses, losses)
        return self.losses

    def loss(self, people: Any, noise: Tensor) -> Tensor:
        """−K of other people, shape (E,)."""
        n_seeds, n_people = noise.shape[:2]
        order, bounds = torch.arange(n_people).expand(n_seeds, -1), np.array([0, n_people])
        return self._losses(_unlabelled(self.vae, people), order, noise, bounds, learning_rate=0.0)

    def _losses(
        self,
        tables: Sequence[Tensor],
        order: Tensor,
        noise: Tensor,
        bounds: np.ndarray,
        learning_rate: float,
        left_out: Sequence[bool] | None = None,
    ) -> Tensor:
        """Losses of minibatches between `bounds`, averaged over people, shape (E,)."""
        compute, objective = kernels().model_epoch, self._objective._replace(n_elbo=noise.shape[3])
        shared, sizes = (self.vae.likelihood.layout, self._nets), torch.from_numpy(np.diff(bounds))
        losses = torch.empty(len(order), len(sizes))
        streams = torch.zeros(len(order), 2, dtype=torch.long)  # nothing is drawn
        given = streams, order, bounds, tables, (losses, noise), shared, objective, left_out
        self.model.epoch(compute, learning_rate, *given)
        return ((losses.double() * sizes).cumsum(1)[:, -1] / order.shape[1]).float()


class Phase2Epochs(Stateful):
    """`fairall.models.latent_learner.Phase2Epochs` compiled, from the same random numbers."""

    def __init__(self, learner: Any) -> None:
        model, policy = learner.model, learner.policy_net
        nets = [net.weights_and_biases() for net in (model.vae.encoder, model.vae.decoder, model.classifier)]
        self.model = Updated([parameter for net in nets for parameter in net])
        self.policy = None if policy is None else Updated(policy.weights_and_biases())
        self._nets = tuple(_flat(net)[1] for net in nets)
        self._policy = None if policy is None else _flat(policy.weights_and_biases())[1]

    @staticmethod
    def fits(learner: Any) -> bool:
        """Whether the loss is described, and the nets are of float32 on the CPU."""
        return learner.objective() is not None and takes(*learner.parameters())

    def model_epoch(self, learner: Any, decided: Any) -> float:
        """Update VAE and classifier on every minibatch; see the definition."""
        n_seeds, shared = len(decided.s), (learner.model.vae.likelihood.layout, self._nets)
        losses = torch.empty(n_seeds, learner.setting.schedule.batches_per_epoch)
        own = losses, torch.empty(n_seeds, 0, 0, 0)  # without noise, which is drawn
        self._epoch(kernels().model_epoch, self.model, learner, decided, own, shared)
        return losses[:, -1].mean().item()

    def policy_epoch(self, learner: Any, decided: Any) -> None:
        """Update the policy net, if there is one, on every minibatch."""
        if self.policy is not None:
            own, shared = (self.model.theta, learner.model.vae.frame), (self._nets, self._policy)
            self._epoch(kernels().policy_epoch, self.policy, learner, decided, own, shared)

    def _epoch(
        self,
        compute: Callable[..., None],
        updated: Updated,
        learner: Any,
        decided: Any,
        own: tuple[Tensor, ...],
        shared: tuple[Any, ...],
    ) -> None:
        n_batches, n_people = learner.setting.schedule.batches_per_epoch, decided.s.shape[1]
        order = learner.streams.permutations(n_people)
        bounds = np.cumsum([0, *map(len, np.array_split(np.arange(n_people), n_batches))])
        given = learner.noise.state, order, bounds, learner.tables(decided), own, shared
        updated.epoch(compute, learner.config.learning_rate, *given, learner.objective())


def _unlabelled(vae: Any, people: Any) -> tuple[Tensor, ...]:
    """Tables of each replicate's people or of one for all, as `LatentLearner.tables`, all with d = 1."""
    x, s = (values if people.s.dim() > 1 else values.unsqueeze(0) for values in (people.x, people.s))
    tables = vae.encoder_input(x, s).mT, x[..., vae.likelihood.columns], vae.likelihood.log_base(x)
    ones = torch.ones_like(s)
    labelled = ones.bool(), ones, ones, ones, torch.zeros_like(s, dtype=torch.long)
    return tuple(table.contiguous() for table in (*tables, *labelled))


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
