"""p(x | z, s) for tables of mixed kinds, vectorised over all features of a kind."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from fairall.data.features import Kind, Schema

MIN_RATE = 1e-6  # keeps precisions and Poisson rates away from zero, where their logarithm is not finite
MAX_LOGIT = 30.0  # odds are bounded by e^60, so that exponentials of logits are exact in float32


class MixedLikelihood:
    """Independent likelihoods of the features given the decoder's outputs.

    Real features are Gaussian in natural parameters: the decoder gives η1 and r, η2 = −softplus(r), and
    log p(x) = η1·x + η2·x² + η1²/(4·η2) + ½·log(−2·η2) − ½·log 2π. Counts are Poisson with a softplus rate,
    binary features Bernoulli, categorical ones a softmax over their codes.

    The decoder's P outputs lie in blocks: η1 of all real features, η2 of all real features, rates, Bernoulli
    logits, and the categorical logits feature after feature.
    """

    def __init__(self, schema: Schema) -> None:
        self.n_features = len(schema)
        self.real, self.count, self.binary, self.categorical = (
            torch.tensor(schema.columns(kind), dtype=torch.long) for kind in Kind
        )
        self.binary_codes = torch.tensor([schema[i].codes for i in self.binary]).reshape(-1, 2)
        # A categorical column repeated once per code, its codes, and which logits belong to which feature.
        self.sizes = [len(schema[i].codes) for i in self.categorical]
        self.repeated = self.categorical.repeat_interleave(torch.tensor(self.sizes, dtype=torch.long))
        self.codes = torch.tensor([code for i in self.categorical for code in schema[i].codes])
        self.membership = torch.block_diag(*(torch.ones(size, 1) for size in self.sizes))
        n_real, n_count, n_binary = len(self.real), len(self.count), len(self.binary)
        self.block_sizes = [n_real, n_real, n_count, n_binary, len(self.codes)]

    @property
    def n_outputs(self) -> int:
        """P, the number of decoder outputs needed."""
        return sum(self.block_sizes)

    def log_prob(self, outputs: Tensor, x: Tensor) -> Tensor:
        """Log p(x | z, s), summed over features.

        Args:
            outputs: decoder outputs, shape (..., P).
            x: features with categories as their codes, shape (..., D), broadcastable over the leading axes.

        Returns:
            Shape (...), in nats.
        """
        eta1, raw_eta2, raw_rate, binary_logit, logits = outputs.split(self.block_sizes, dim=-1)
        total = outputs.new_zeros(())
        if self.real.numel():
            value = x[..., self.real]
            eta2 = -F.softplus(raw_eta2) - MIN_RATE
            density = (
                value * (eta1 + eta2 * value) + eta1.square() / (4.0 * eta2) + 0.5 * torch.log(-2.0 * eta2)
            )
            total = total + density.sum(-1) - 0.5 * math.log(2.0 * math.pi) * self.real.numel()
        if self.count.numel():
            value = x[..., self.count]
            rate = F.softplus(raw_rate) + MIN_RATE
            total = total + (value * torch.log(rate) - rate).sum(-1) - torch.lgamma(value + 1.0).sum(-1)
        if self.binary.numel():
            value = (x[..., self.binary] == self.binary_codes[:, 1]).to(x.dtype)
            total = total + (value * binary_logit - F.softplus(binary_logit)).sum(-1)
        if self.categorical.numel():
            one_hot = (x[..., self.repeated] == self.codes).to(x.dtype)
            bounded = logits.clamp(-MAX_LOGIT, MAX_LOGIT)
            normaliser = torch.log(bounded.exp() @ self.membership).sum(-1)
            total = total + (bounded * one_hot).sum(-1) - normaliser
        return total

    def reconstruct(self, outputs: Tensor) -> Tensor:
        """The most telling single value of each feature: the mean of real ones and counts, else the mode.

        Args:
            outputs: decoder outputs, shape (..., P).

        Returns:
            Shape (..., D), categories as their codes.
        """
        eta1, raw_eta2, raw_rate, binary_logit, logits = outputs.split(self.block_sizes, dim=-1)
        x = outputs.new_zeros(*outputs.shape[:-1], self.n_features)
        x[..., self.real] = eta1 / (2.0 * (F.softplus(raw_eta2) + MIN_RATE))
        x[..., self.count] = F.softplus(raw_rate) + MIN_RATE
        x[..., self.binary] = torch.where(binary_logit > 0, self.binary_codes[:, 1], self.binary_codes[:, 0])
        if self.categorical.numel():
            modes = [
                codes[part.argmax(-1)]
                for part, codes in zip(
                    logits.split(self.sizes, -1), self.codes.split(self.sizes), strict=True
                )
            ]
            x[..., self.categorical] = torch.stack(modes, -1)
        return x
