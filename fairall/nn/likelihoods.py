"""Likelihood p(x | z, s) of features of mixed kinds, vectorised over the features of a kind.

Every kind is an exponential family, log p = η·T(x) − A(η) + log h(x).
"""

from __future__ import annotations

import functools
import itertools
import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from fairall.data.features import Kind, Schema

MIN_RATE = 1e-6  # keeps precisions and Poisson rates away from zero, where their logarithm is not finite
MAX_LOGIT = 30.0  # odds are bounded by e^60, so that exponentials of logits are exact in float32


class KindLikelihood(ABC):
    """Likelihood of the k features of one kind, independent given a block of the decoder's outputs.

    Args:
        schema: all features.

    Attributes:
        kind: of the features.
        columns: indices of the features in x, shape (k,).
        n_outputs: p, the size of the block.
    """

    kind: ClassVar[Kind]

    def __init__(self, schema: Schema) -> None:
        self.columns = torch.tensor(schema.columns(self.kind), dtype=torch.long)
        self.n_outputs = len(self.columns)

    @abstractmethod
    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Log p(x | z, s) − log h(x), summed over features, shape (E, B, L), in nats.

        Args:
            outputs: the block, shape (E, p, B, L).
            x: the features, shape (E, k, B, 1).
        """

    def log_base(self, x: Tensor) -> Tensor:
        """Log h(x), the part of log p without parameters, summed over features (E, k, B, 1): shape (E, B)."""
        return x.new_zeros(x.shape[0], x.shape[2])

    @abstractmethod
    def point_estimate(self, outputs: Tensor) -> Tensor:
        """Mean (real, count) or mode (binary, categorical), shape (E, k, B), for outputs (E, p, B)."""


class Gaussian(KindLikelihood):
    """Real features in natural parameters: the outputs are all η1, then all r with η2 = −softplus(r)."""

    kind = Kind.REAL

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)
        self.n_outputs *= 2

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """½·log τ − ½·τ·(x − μ)², with the precision τ = −2·η2 and the mean μ = η1/τ; (E, B, L)."""
        mean, precision = self._mean_and_precision(outputs)
        return 0.5 * (torch.log(precision) - precision * (x - mean).square()).sum(1)

    def log_base(self, x: Tensor) -> Tensor:
        """−½·log 2π for each feature, shape (E, B)."""
        constant = -0.5 * math.log(2.0 * math.pi) * len(self.columns)
        return x.new_full((x.shape[0], x.shape[2]), constant)

    def point_estimate(self, outputs: Tensor) -> Tensor:
        """The mean, shape (E, k, B)."""
        return self._mean_and_precision(outputs)[0]

    def _mean_and_precision(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        eta1, raw = outputs.chunk(2, dim=1)
        precision = 2.0 * (F.softplus(raw) + MIN_RATE)
        return eta1 / precision, precision


class Poisson(KindLikelihood):
    """Counts with rate softplus of the output; the authors' code has exp."""

    kind = Kind.COUNT

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """x·log λ − λ, with the rate λ, shape (E, B, L)."""
        rate = self.point_estimate(outputs)
        return (x * torch.log(rate) - rate).sum(1)

    def log_base(self, x: Tensor) -> Tensor:
        """−log x! for each feature, shape (E, B)."""
        return -torch.lgamma(x + 1.0).sum((1, -1))

    def point_estimate(self, outputs: Tensor) -> Tensor:
        """The rate, shape (E, k, B)."""
        return F.softplus(outputs) + MIN_RATE


class Bernoulli(KindLikelihood):
    """Binary features; the outputs are the logits of their second codes."""

    kind = Kind.BINARY

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)
        self.codes = torch.tensor([schema[i].codes for i in self.columns]).reshape(-1, 2, 1, 1)

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """The logit for the second code, less log(1 + e^logit), shape (E, B, L)."""
        return bernoulli_log_prob(outputs, (x == self.codes[:, 1]).to(outputs.dtype)).sum(1)

    def point_estimate(self, outputs: Tensor) -> Tensor:
        """The more probable code, shape (E, k, B)."""
        return torch.where(outputs > 0, self.codes[:, 1, :, 0], self.codes[:, 0, :, 0])


class Categorical(KindLikelihood):
    """Categorical features: a softmax over the codes of each; the outputs are their logits in turn."""

    kind = Kind.CATEGORICAL

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema)
        self.codes_of = [torch.tensor(schema[i].codes) for i in self.columns]
        self.sizes = [len(codes) for codes in self.codes_of]
        self.n_outputs = sum(self.sizes)

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Log softmax at the code of x; the gradient of a logit beyond `MAX_LOGIT` is that at the bound."""
        free = outputs.detach()
        logits = free.clamp(-MAX_LOGIT, MAX_LOGIT) + (outputs - free)
        of_features = zip(logits.split(self.sizes, 1), self.codes_of, x.unbind(1), strict=True)
        return torch.stack(
            [
                ((value.unsqueeze(1) == codes.view(-1, 1, 1)) * own).sum(1) - own.logsumexp(1)
                for own, codes, value in of_features
            ]
        ).sum(0)

    def point_estimate(self, outputs: Tensor) -> Tensor:
        """The most probable code, shape (E, k, B)."""
        of_features = zip(outputs.split(self.sizes, 1), self.codes_of, strict=True)
        return torch.stack([codes[logits.argmax(1)] for logits, codes in of_features], 1)


class MixedLikelihood:
    """Likelihood of all features, independent given the decoder's outputs, which are in blocks by kind.

    >>> from fairall.data.features import Feature, Kind, Schema
    >>> likelihood = MixedLikelihood(Schema([Feature("visits", Kind.COUNT), Feature("height", Kind.REAL)]))
    >>> likelihood.n_outputs, likelihood.block_sizes
    (3, [2, 1])
    >>> outputs, x = torch.zeros(1, 3, 4, 5), torch.ones(1, 4, 2)  # E = 1, B = 4 people, L = 5 samples
    >>> likelihood.log_prob(outputs, x).shape
    torch.Size([1, 4])
    >>> likelihood.reconstruct(outputs[..., 0])[0, 0]
    tensor([0.6931, 0.0000])
    """

    def __init__(self, schema: Schema) -> None:
        self.n_features = len(schema)
        real, count = Gaussian(schema), Poisson(schema)
        binary, categorical = Bernoulli(schema), Categorical(schema)
        kinds: list[KindLikelihood] = [real, count, binary, categorical]
        self.kinds = [kind for kind in kinds if kind.n_outputs > 0]
        self.block_sizes = [kind.n_outputs for kind in self.kinds]
        self.block_ends = list(itertools.accumulate(self.block_sizes))
        self.columns = torch.cat([kind.columns for kind in self.kinds])
        # For compiled code (`fairall.nn.native`): numbers of real, count and binary features, numbers of
        # codes of categorical ones, the second code of each binary feature and all codes of categorical ones.
        self.layout = (
            len(real.columns),
            len(count.columns),
            len(binary.columns),
            np.array(categorical.sizes, np.int64),
            torch.cat([binary.codes[:, 1].flatten(), *categorical.codes_of]).numpy(),
            np.float32(MIN_RATE),
            np.float32(MAX_LOGIT),
        )

    @property
    def n_outputs(self) -> int:
        """P, the number of outputs of the decoder."""
        return sum(self.block_sizes)

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Log p(x | z, s), summed over features and averaged over samples of z, shape (E, B), in nats.

        Args:
            outputs: decoder outputs of L samples a person, shape (E, P, B, L); further ones are ignored.
            x: features with categories as their codes, shape (E, B, D).
        """
        values = x.mT.unsqueeze(-1)
        blocks = zip(self.kinds, outputs.tensor_split(self.block_ends, 1), strict=False)
        parts = (kind.log_prob(block, values.index_select(1, kind.columns)) for kind, block in blocks)
        return functools.reduce(torch.add, parts).mean(-1) + self.log_base(x)

    def log_base(self, x: Tensor) -> Tensor:
        """Log h(x), the part of `log_prob` that depends on x alone, shape (E, B), for x (E, B, D)."""
        values = x.mT.unsqueeze(-1)
        parts = (kind.log_base(values.index_select(1, kind.columns)) for kind in self.kinds)
        return functools.reduce(torch.add, parts)

    def reconstruct(self, outputs: Tensor) -> Tensor:
        """Mean (real, count) or mode (binary, categorical), shape (E, B, D), for outputs (E, P, B).

        Further outputs are ignored.
        """
        x = outputs.new_zeros(len(outputs), self.n_features, outputs.shape[2])
        for kind, block in zip(self.kinds, outputs.tensor_split(self.block_ends, 1), strict=False):
            x[:, kind.columns] = kind.point_estimate(block).to(x.dtype)
        return x.mT


def bernoulli_log_prob(logit: Tensor, value: Tensor) -> Tensor:
    """Log p of `value` in {0, 1} with this logit of 1, shape of both after broadcasting."""
    return value * logit - F.softplus(logit)
