"""p(x | z, s) for tables of mixed kinds, vectorised over all features of a kind.

Every kind is an exponential family, log p = η·T(x) − A(η) + log h(x), whose gradient in η is T(x) − E[T(x)].
Both come from the same few intermediate values, so each kind gives them together: a graph of elementwise
operations for autograd to walk back would cost several times as much as the decoder itself.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from fairall.data.features import Kind, Schema

MIN_RATE = 1e-6  # keeps precisions and Poisson rates away from zero, where their logarithm is not finite
MAX_LOGIT = 30.0  # odds are bounded by e^60, so that exponentials of logits are exact in float32


class KindLikelihood(ABC):
    """The features of one kind: independent, and with a block of the decoder's outputs of their own.

    Args:
        schema: all features.
        kind: which of them.

    Attributes:
        columns: where in x they are, k of them.
        n_outputs: p, the size of their block.
    """

    n_outputs: int

    def __init__(self, schema: Schema, kind: Kind) -> None:
        self.columns = torch.tensor(schema.columns(kind), dtype=torch.long)

    @abstractmethod
    def log_prob(self, outputs: Tensor, x: Tensor, score: Tensor | None) -> Tensor:
        """Log p(x | z, s), summed over features and averaged over samples.

        Args:
            outputs: the block, shape (E, p, B, L).
            x: the features, shape (E, k, B, 1).
            score: where to write the gradient of log p in the outputs of each sample, shape (E, p, B, L).

        Returns:
            Shape (E, B), in nats.
        """

    @abstractmethod
    def point_estimate(self, outputs: Tensor) -> Tensor:
        """The most telling values, shape (E, k, B), for outputs (E, p, B)."""


class Gaussian(KindLikelihood):
    """Real features, in natural parameters: the decoder gives all η1, then all r, and η2 = −softplus(r)."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema, Kind.REAL)
        self.n_outputs = 2 * len(self.columns)

    def log_prob(self, outputs: Tensor, x: Tensor, score: Tensor | None) -> Tensor:
        """See `KindLikelihood.log_prob`; T = (x, x²), E[T] = (μ, μ² + σ²)."""
        eta1, raw = outputs.chunk(2, dim=1)
        precision = 2.0 * (F.softplus(raw) + MIN_RATE)  # −2·η2
        mean = eta1 / precision
        if score is not None:
            of_eta1, of_raw = score.chunk(2, dim=1)
            torch.sub(x, mean, out=of_eta1)
            torch.mul(mean.square() + 1.0 / precision - x.square(), torch.sigmoid(raw), out=of_raw)
        log_prob = 0.5 * (torch.log(precision) - precision * (x - mean).square())
        return _over_samples(log_prob) - 0.5 * math.log(2.0 * math.pi) * len(self.columns)

    def point_estimate(self, outputs: Tensor) -> Tensor:
        """The mean."""
        eta1, raw = outputs.chunk(2, dim=1)
        return eta1 / (2.0 * (F.softplus(raw) + MIN_RATE))


class Poisson(KindLikelihood):
    """Counts, with a softplus rate."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema, Kind.COUNT)
        self.n_outputs = len(self.columns)

    def log_prob(self, outputs: Tensor, x: Tensor, score: Tensor | None) -> Tensor:
        """See `KindLikelihood.log_prob`."""
        rate = self.point_estimate(outputs)
        if score is not None:
            torch.mul(x / rate - 1.0, torch.sigmoid(outputs), out=score)
        return _over_samples(x * torch.log(rate) - rate) - torch.lgamma(x + 1.0).sum((1, -1))

    def point_estimate(self, outputs: Tensor) -> Tensor:
        """The rate, which is the mean."""
        return F.softplus(outputs) + MIN_RATE


class Bernoulli(KindLikelihood):
    """Binary features, with the logit of their second code."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema, Kind.BINARY)
        self.n_outputs = len(self.columns)
        self.codes = torch.tensor([schema[i].codes for i in self.columns]).reshape(-1, 2, 1, 1)

    def log_prob(self, outputs: Tensor, x: Tensor, score: Tensor | None) -> Tensor:
        """See `KindLikelihood.log_prob`."""
        return bernoulli_log_prob(outputs, (x == self.codes[:, 1]).to(outputs.dtype), score)

    def point_estimate(self, outputs: Tensor) -> Tensor:
        """The likelier code."""
        return torch.where(outputs > 0, self.codes[:, 1, :, 0], self.codes[:, 0, :, 0])


class Categorical(KindLikelihood):
    """Categorical features: a softmax over the codes of each, the logits feature after feature."""

    def __init__(self, schema: Schema) -> None:
        super().__init__(schema, Kind.CATEGORICAL)
        # Which logits belong to which feature, shape (k, p), and the same as an index.
        self.sizes = [len(schema[i].codes) for i in self.columns]
        self.owner = torch.arange(len(self.sizes)).repeat_interleave(
            torch.tensor(self.sizes, dtype=torch.long)
        )
        self.membership = torch.block_diag(*(torch.ones(1, size) for size in self.sizes))
        self.codes = torch.tensor([code for i in self.columns for code in schema[i].codes])
        self.n_outputs = len(self.codes)

    def log_prob(self, outputs: Tensor, x: Tensor, score: Tensor | None) -> Tensor:
        """See `KindLikelihood.log_prob`; a logit out of bounds is learnt from as if it were at its bound."""
        membership = self.membership.to(outputs.dtype)
        indicator = (x.index_select(1, self.owner) == self.codes.view(-1, 1, 1)).to(outputs.dtype)
        logits = outputs.clamp(-MAX_LOGIT, MAX_LOGIT)
        odds = torch.exp(logits).flatten(2)
        total = torch.matmul(membership, odds)
        chosen = (logits.mean(-1, keepdim=True) * indicator).sum((1, -1))
        normaliser = torch.log(total).sum(1).unflatten(-1, outputs.shape[2:]).mean(-1)
        if score is not None:
            probability = odds.mul_(torch.matmul(membership.mT, total.reciprocal_())).view_as(outputs)
            torch.sub(indicator, probability, out=score)
        return chosen - normaliser

    def point_estimate(self, outputs: Tensor) -> Tensor:
        """The likeliest code."""
        of_features = zip(outputs.split(self.sizes, 1), self.codes.split(self.sizes), strict=True)
        return torch.stack([codes[logits.argmax(1)] for logits, codes in of_features], 1)


class MixedLikelihood:
    """Independent likelihoods of all features given the decoder's outputs, block after block by kind."""

    def __init__(self, schema: Schema) -> None:
        self.n_features = len(schema)
        kinds: list[KindLikelihood] = [
            Gaussian(schema),
            Poisson(schema),
            Bernoulli(schema),
            Categorical(schema),
        ]
        self.kinds = [kind for kind in kinds if kind.n_outputs > 0]
        self.block_sizes = [kind.n_outputs for kind in self.kinds]

    @property
    def n_outputs(self) -> int:
        """P, the number of decoder outputs needed."""
        return sum(self.block_sizes)

    def log_prob(self, outputs: Tensor, x: Tensor, score: Tensor | None = None) -> Tensor:
        """Log p(x | z, s), summed over features and averaged over samples of z.

        Args:
            outputs: decoder outputs of L samples a person, shape (E, P, B, L).
            x: features with categories as their codes, shape (E, B, D).
            score: where to write the gradient of log p in the outputs of each sample, shape (E, P, B, L).

        Returns:
            Shape (E, B), in nats.
        """
        blocks = outputs.split(self.block_sizes, 1)
        scores = [None] * len(blocks) if score is None else score.split(self.block_sizes, 1)
        values = x.mT.unsqueeze(-1)
        total = outputs.new_zeros(())
        for kind, block, into in zip(self.kinds, blocks, scores, strict=True):
            total = total + kind.log_prob(block, values.index_select(1, kind.columns), into)
        return total

    def reconstruct(self, outputs: Tensor) -> Tensor:
        """The most telling single value of each feature: the mean of real ones and counts, else the mode.

        Args:
            outputs: decoder outputs, shape (E, P, B).

        Returns:
            Shape (E, B, D), categories as their codes.
        """
        x = outputs.new_zeros(len(outputs), self.n_features, outputs.shape[2])
        for kind, block in zip(self.kinds, outputs.split(self.block_sizes, 1), strict=True):
            x[:, kind.columns] = kind.point_estimate(block).to(x.dtype)
        return x.mT


def bernoulli_log_prob(logit: Tensor, value: Tensor, score: Tensor | None = None) -> Tensor:
    """Of `value` in {0, 1}, shape (E, k, B, 1), given logits (E, k, B, L); see `KindLikelihood.log_prob`."""
    if score is not None:
        torch.sub(value, torch.sigmoid(logit), out=score)
    return _over_samples(value * logit - F.softplus(logit))


def _over_samples(log_prob: Tensor) -> Tensor:
    """Summed over features and averaged over samples: (E, k, B, L) to (E, B)."""
    return log_prob.sum(1).mean(-1)
