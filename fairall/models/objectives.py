"""The terms of the losses, as pure functions on stacked tensors (section 4, appendix C.2)."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from fairall.config.schema import KL


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of `values` (E, B) over the rows of `mask` (E, B), per replicate; 0 where a replicate has none."""
    total = torch.where(mask, values, values.new_zeros(())).sum(-1)
    return total / mask.sum(-1).clamp(min=1)


def cost_sensitive_cross_entropy(logit: Tensor, label: Tensor, cost: float) -> Tensor:
    """−[c·(1 − ỹ)·log(1 − q) + (1 − c)·ỹ·log q], the classification loss without its weight (eq. 4).

    Args:
        logit: logit of q(ũ = 1), any shape.
        label: ỹ in {0, 1}, same shape.
        cost: c in (0, 1).

    Returns:
        Non-negative, same shape.
    """
    return cost * (1.0 - label) * F.softplus(logit) + (1.0 - cost) * label * F.softplus(-logit)


def ips_weight(propensity: Tensor, accepted: Tensor, most: float | None) -> Tensor:
    """1/π of the labelled rows, at most `most` (None: no bound); 1 for the others (section 2.1).

    A bound makes the estimate of a mean over all applicants too low by what the rarest of them weigh, and
    keeps a single one of them from being the whole estimate.

    Args:
        propensity: π(d=1 | x, s) with which each row was decided, shape (E, B), positive on accepted rows.
        accepted: which rows are labelled, shape (E, B), bool.
        most: 1 or more.

    Returns:
        Shape (E, B).
    """
    # The weight of a rejected row is never used; 1 keeps 0 · inf out of the gradient.
    weight = 1.0 / torch.where(accepted, propensity, torch.ones_like(propensity))
    return weight if most is None else weight.clamp(max=most)


def ips_risk(loss: Tensor, weight: Tensor, accepted: Tensor) -> Tensor:
    """Inverse-propensity-scored mean of a loss over the labelled rows (section 2.1).

    Times the labelled share of the batch this is the Horvitz-Thompson estimate, unbiased for the mean loss
    over all applicants; the mean over labelled rows is the expectation over A^L that the paper's J takes.

    Args:
        loss: loss per row, shape (E, B); ignored on rejected rows.
        weight: of each row, shape (E, B), see `ips_weight`.
        accepted: which rows are labelled, shape (E, B), bool.

    Returns:
        Shape (E,); 0 for a replicate with no labelled row.
    """
    return masked_mean(loss * weight, accepted)


def samples(loc: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
    """L samples loc + scale·ε, shape (..., Z, L), for loc and scale (..., Z) and normal ε (..., Z, L)."""
    return torch.addcmul(loc.unsqueeze(-1), scale.unsqueeze(-1), noise)


def gaussian_kl(loc: Tensor, scale: Tensor) -> Tensor:
    """KL(N(loc, scale²) ‖ N(0, I)), shape (..., Z) to (...), in nats."""
    return 0.5 * (loc.square() + scale.square() - 2.0 * torch.log(scale) - 1.0).sum(-1)


def mixture_kl(logit: Tensor, loc: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
    """KL(Σ_ũ q(ũ | x, s)·q(z | x, s, ũ) ‖ N(0, I)) by Monte Carlo (eq. 11, appendix C.2).

    The samples are z_jk = loc_j + scale_j·ε_jk of component j. Every density needed at them, of the own
    component, of the other and of the prior, is a quadratic in z and so linear in (ε, ε²), which makes all of
    them one matrix product with constants on its right.

    Args:
        logit: logit of q(ũ = 1 | x, s), shape (...).
        loc: locations of the components ũ = 0 and ũ = 1, shape (..., 2, Z).
        scale: their scales, shape (..., 2, Z).
        noise: standard normal ε, K per component, shape (..., 2, Z, K).

    Returns:
        Shape (...), in nats; non-negative up to Monte-Carlo error.
    """
    other_loc, other_scale = loc.flip(-2), scale.flip(-2)
    ratio = scale / other_scale
    shift = (loc - other_loc) / other_scale

    basis = torch.cat([noise, noise.square()], dim=-2)
    linear = torch.stack([2.0 * shift * ratio, 2.0 * loc * scale], dim=-2)
    square = torch.stack([ratio.square(), scale.square()], dim=-2)
    offset = torch.stack([shift.square().sum(-1), loc.square().sum(-1)], dim=-1)
    other, prior = (torch.cat([linear, square], dim=-1) @ basis + offset.unsqueeze(-1)).unbind(-2)
    own = noise.square().sum(-2)

    log_weight = torch.stack([F.logsigmoid(-logit), F.logsigmoid(logit)], dim=-1)
    log_volume = torch.log(scale).sum(-1)
    # The (2π)^(Z/2) of all three densities cancel.
    log_own = (log_weight - log_volume).unsqueeze(-1) - 0.5 * own
    log_other = (log_weight - log_volume).flip(-1).unsqueeze(-1) - 0.5 * other
    log_ratio = torch.logaddexp(log_own, log_other) + 0.5 * prior
    return (log_weight.exp() * log_ratio.mean(-1)).sum(-1)


def cdf_mixture_kl(logit: Tensor, loc: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
    """What the authors' code has in the place of `mixture_kl`; same arguments, not a divergence.

    Where the logarithm of the mixture's density belongs, it has, dimension by dimension, the log-sum-exp
    over ũ of q(ũ)·F(z_j | ũ) with the distribution function F. That stays between log 2 and log(1 + e), so
    that the entropy of q is lost and what is left is about E[−log p(z)] plus a constant.

    Returns:
        Shape (...), in nats.
    """
    z = samples(loc, scale, noise)
    log_prior = -0.5 * (z.square() + math.log(2.0 * math.pi))
    own = torch.special.ndtr(noise)
    other = torch.special.ndtr((z - loc.flip(-2).unsqueeze(-1)) / scale.flip(-2).unsqueeze(-1))
    weight = torch.stack([torch.sigmoid(-logit), torch.sigmoid(logit)], dim=-1)
    shares = weight[..., None, None]
    log_mixture = torch.logaddexp(shares * own, shares.flip(-3) * other)
    return (weight * (log_mixture - log_prior).sum(-2).mean(-1)).sum(-1)


MIXTURE_KL = {KL.density: mixture_kl, KL.cdf: cdf_mixture_kl}
"""The KL term of U by `protocol.kl`."""
