"""Evidence lower bounds of the paper: K of Phase I, L and U of Phase II, and their KL terms.

Equations are numbered as the paper's LaTeX counts them. Every KL term has a weight β, which the paper's
equations leave out and its appendix D.2 selects.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from fairall.config.schema import KL
from fairall.models.vae import ConditionalVAE


class ElboTerms(NamedTuple):
    """What the ELBO of each of B rows consists of.

    Attributes:
        log_likelihood: E_q[log p(x | z, s) + d·log p(ũ | z, s, d = 1)], shape (E, B), in nats.
        loc: location of q(z | x, s, ũ), shape (E, B, Z).
        scale: its scale, same shape.
    """

    log_likelihood: Tensor
    loc: Tensor
    scale: Tensor


def elbo_terms(
    vae: ConditionalVAE,
    x: Tensor,
    s: Tensor,
    noise: Tensor,
    utility: Tensor | None = None,
    decision: Tensor | None = None,
) -> ElboTerms:
    """Encode rows, draw L samples z = loc + scale·ε of each, and decode them.

    z is in the axes that the encoder has learnt: a signed permutation of them (`ConditionalVAE.frame`)
    changes neither expectation nor KL.

    Args:
        vae: E conditional VAEs.
        x: features, shape (E, B, D).
        s: sensitive attribute in {−1, +1}, shape (E, B).
        noise: standard normal ε, shape (E, B, Z, L).
        utility: ũ in {0, 1}, shape (E, B), exactly if the VAE models it.
        decision: d in {0, 1}, shape (E, B): whether ũ is a label, whose likelihood counts, or imputed; by
            default 1.
    """
    loc, scale = vae.posterior(x, s, utility)
    z = reparameterize(loc, scale, noise)
    return ElboTerms(vae.log_likelihood(z, s, x, utility, decision), loc, scale)


def phase1_elbo(vae: ConditionalVAE, x: Tensor, s: Tensor, noise: Tensor, *, beta: float) -> Tensor:
    """K = E_q[log p(x | z, s)] − β·KL(q(z | x, s) ‖ p(z)), averaged over people (eq. 6), of a VAE without ũ.

    Arguments as for `elbo_terms`; shape (E,), in nats per person.
    """
    return elbo(elbo_terms(vae, x, s, noise), beta=beta).mean(-1)


def elbo(terms: ElboTerms, *, beta: float) -> Tensor:
    """E_q[log p(x | z, s) + d·log p(ũ | z, s, d = 1)] − β·KL(q(z | x, s, ũ) ‖ p(z)), shape (E, B), in nats.

    Averaged over people with their labels ũ and d = 1 this is L (eq. 3).
    """
    return terms.log_likelihood - beta * gaussian_kl(terms.loc, terms.scale)


def unlabelled_elbo(
    terms: ElboTerms, logit: Tensor, noise: Tensor, *, beta: float, kl: KL = KL.density
) -> Tensor:
    """Σ_ũ q(ũ | x, s)·E_q[log p(x | z, s)] − β·KL(Σ_ũ q(ũ | x, s)·q(z | x, s, ũ) ‖ p(z)), shape (E, B).

    Averaged over people this is U (eq. 4). The terms are of B people with d = 0, each with ũ = 0 and then
    with ũ = 1, 2·B rows. `logit` and `noise` are those of `mixture_kl`.
    """
    log_likelihood, loc, scale = (rows.unflatten(1, (-1, 2)) for rows in terms)
    expected = (imputation(logit) * log_likelihood).sum(-1)
    return expected - beta * MIXTURE_KL[kl](logit, loc, scale, noise)


def imputation(logit: Tensor) -> Tensor:
    """q(ũ | x, s) of ũ = 0 and ũ = 1, shape (..., 2), for the logit (...) of q(ũ = 1 | x, s)."""
    probability = torch.sigmoid(logit)
    return torch.stack([1.0 - probability, probability], dim=-1)


def reparameterize(loc: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
    """L samples loc + scale·ε, shape (..., Z, L), for loc and scale (..., Z) and normal ε (..., Z, L)."""
    return torch.addcmul(loc.unsqueeze(-1), scale.unsqueeze(-1), noise)


def gaussian_kl(loc: Tensor, scale: Tensor) -> Tensor:
    """KL(N(loc, scale²) ‖ N(0, I)), shape (..., Z) to (...), in nats.

    >>> gaussian_kl(torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.ones(2, 2))
    tensor([ 0.0000, 12.5000])
    """
    return 0.5 * (loc.square() + scale.square() - 2.0 * torch.log(scale) - 1.0).sum(-1)


def mixture_kl(logit: Tensor, loc: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
    """KL(Σ_ũ q(ũ | x, s)·q(z | x, s, ũ) ‖ N(0, I)) by Monte Carlo (eq. 17).

    Σ_j q(ũ = j | x, s) · 1/K · Σ_k [log Σ_i q(ũ = i | x, s)·q(z_jk | x, s, ũ = i) − log p(z_jk)]
    with K samples z_jk of each component j.

    Args:
        logit: logit of q(ũ = 1 | x, s), shape (...).
        loc: locations of the components ũ = 0 and ũ = 1, shape (..., 2, Z).
        scale: their scales, shape (..., 2, Z).
        noise: standard normal ε, K per component, shape (..., 2, Z, K).

    Returns:
        Shape (...), in nats; non-negative up to Monte-Carlo error.
    """
    log_q = torch.stack([F.logsigmoid(-logit), F.logsigmoid(logit)], dim=-1)
    z = reparameterize(loc, scale, noise)
    # Without the (2π)^(−Z/2) of all densities. Dimensions are sample's component j, density's component i, k.
    distance = (z.unsqueeze(-3) - loc[..., None, :, :, None]) / scale[..., None, :, :, None]
    log_density = -0.5 * distance.square().sum(-2) - torch.log(scale).sum(-1)[..., None, :, None]
    log_mixture = torch.logsumexp(log_q[..., None, :, None] + log_density, dim=-2)
    log_prior = -0.5 * z.square().sum(-2)
    return (log_q.exp() * (log_mixture - log_prior).mean(-1)).sum(-1)


def cdf_mixture_kl(logit: Tensor, loc: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
    """The authors' code in place of `mixture_kl`, with its arguments; not a divergence. Shape (...), in nats.

    In place of the logarithm of the mixture's density it has, dimension by dimension, the log-sum-exp over ũ
    of q(ũ)·F(z_j | ũ) with the distribution function F. That stays between log 2 and log(1 + e), so that the
    entropy of q is lost and what is left is about E[−log p(z)] plus a constant.
    """
    z = reparameterize(loc, scale, noise)
    log_prior = -0.5 * (z.square() + math.log(2.0 * math.pi))
    own = torch.special.ndtr(noise)
    other = torch.special.ndtr((z - loc.flip(-2).unsqueeze(-1)) / scale.flip(-2).unsqueeze(-1))
    weight = torch.stack([torch.sigmoid(-logit), torch.sigmoid(logit)], dim=-1)
    shares = weight[..., None, None]
    log_mixture = torch.logaddexp(shares * own, shares.flip(-3) * other)
    return (weight * (log_mixture - log_prior).sum(-2).mean(-1)).sum(-1)


MIXTURE_KL = {KL.density: mixture_kl, KL.cdf: cdf_mixture_kl}
"""The KL term of U by `protocol.kl`."""
