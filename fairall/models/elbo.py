"""Evidence lower bounds of the paper: K of Phase I, L and U of Phase II, and their KL terms.

Equations are numbered as the paper's LaTeX counts them. Every KL term has a weight β, which the paper's
equations leave out and its appendix D.2 selects. Samples of z are in the axes that the encoder has learnt: a
signed permutation of them (`ConditionalVAE.frame`) changes neither expectation nor KL.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.distributions import Normal

from fairall.config.schema import KL
from fairall.models.vae import ConditionalVAE, imputation, with_both_utilities


def elbo(
    vae: ConditionalVAE, x: Tensor, s: Tensor, noise: Tensor, *, beta: float, utility: Tensor | None = None
) -> Tensor:
    """E_q[log p(x | z, s) + log p(ũ | z, s, d = 1)] − β·KL(q(z | x, s, ũ) ‖ p(z)), by L samples of z.

    Averaged over people with their labels ũ this is L (eq. 3), and of a VAE without ũ it is K of Phase I
    (eq. 6).

    Args:
        vae: E conditional VAEs.
        x: features, shape (E, B, D).
        s: sensitive attribute in {−1, +1}, shape (E, B).
        noise: standard normal ε, shape (E, B, Z, L).
        beta: weight of the KL term.
        utility: ũ in {0, 1}, shape (E, B), exactly if the VAE models it.

    Returns:
        Shape (E, B), in nats.
    """
    loc, scale = vae.posterior(x, s, utility)
    z = reparameterize(loc, scale, noise)
    return vae.log_likelihood(z, s, x, utility) - beta * gaussian_kl(loc, scale)


def unlabelled_elbo(
    vae: ConditionalVAE,
    x: Tensor,
    s: Tensor,
    noise: Tensor,
    kl_noise: Tensor,
    logit: Tensor,
    *,
    beta: float,
    kl: KL,
) -> Tensor:
    """Σ_ũ q(ũ | x, s)·E_q[log p(x | z, s)] − β·KL(Σ_ũ q(ũ | x, s)·q(z | x, s, ũ) ‖ p(z)).

    Averaged over people with d = 0 this is U (eq. 4).

    Args:
        vae: E conditional VAEs.
        x: features, shape (E, B, D).
        s: sensitive attribute, shape (E, B).
        noise: L samples of ε for ũ = 0 and for ũ = 1, shape (E, B, 2, Z, L).
        kl_noise: K samples for the KL term, shape (E, B, 2, Z, K). The samples of both expectations may be
            the same ones, which biases neither.
        logit: logit of q(ũ = 1 | x, s), shape (E, B).
        beta: weight of the KL term.
        kl: the KL term, see `mixture_kl`.

    Returns:
        Shape (E, B), in nats.
    """
    x, s, utility = with_both_utilities(x, s)
    loc, scale = vae.posterior(x, s, utility)
    log_x = vae.log_likelihood(reparameterize(loc, scale, noise.flatten(1, 2)), s, x)
    log_x, loc, scale = (rows.unflatten(1, (-1, 2)) for rows in (log_x, loc, scale))
    return (imputation(logit) * log_x).sum(-1) - beta * mixture_kl(logit, loc, scale, kl_noise, kl)


def reparameterize(loc: Tensor, scale: Tensor, noise: Tensor) -> Tensor:
    """L samples loc + scale·ε, shape (..., Z, L), for loc and scale (..., Z) and normal ε (..., Z, L)."""
    return torch.addcmul(loc.unsqueeze(-1), scale.unsqueeze(-1), noise)


def gaussian_kl(loc: Tensor, scale: Tensor) -> Tensor:
    """KL(N(loc, scale²) ‖ N(0, I)), shape (..., Z) to (...), in nats.

    >>> gaussian_kl(torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.ones(2, 2))
    tensor([ 0.0000, 12.5000])
    """
    return 0.5 * (loc.square() + scale.square() - 2.0 * torch.log(scale) - 1.0).sum(-1)


def mixture_kl(logit: Tensor, loc: Tensor, scale: Tensor, noise: Tensor, kl: KL = KL.density) -> Tensor:
    """KL(Σ_ũ q(ũ | x, s)·q(z | x, s, ũ) ‖ N(0, I)) by Monte Carlo (eq. 17).

    Σ_j q(ũ = j | x, s) · 1/K · Σ_k [log Σ_i q(ũ = i | x, s)·q(z_jk | x, s, ũ = i) − log p(z_jk)]
    with K samples z_jk of each component j.

    `KL.cdf` is what the authors' code has in place of it, and is not a divergence: in place of the logarithm
    of the mixture's density, dimension by dimension, the log-sum-exp over ũ of q(ũ)·F(z_jk | ũ) with the
    distribution function F. That stays between log 2 and log(1 + e), so that the entropy of q is lost and
    what is left is about E[−log p(z)] plus a constant.

    Args:
        logit: logit of q(ũ = 1 | x, s), shape (...).
        loc: locations of the components ũ = 0 and ũ = 1, shape (..., 2, Z).
        scale: their scales, shape (..., 2, Z).
        noise: standard normal ε, K per component, shape (..., 2, Z, K).
        kl: `protocol.kl`.

    Returns:
        Shape (...), in nats; with `KL.density` non-negative up to Monte-Carlo error.
    """
    z = reparameterize(loc, scale, noise).movedim((-3, -1), (0, 1))  # (2, K, ..., Z)
    components, q = Normal(loc, scale, validate_args=False), imputation(logit)
    if kl is KL.density:
        log_q = F.logsigmoid(torch.stack([-logit, logit], dim=-1))
        log_mixture = (log_q + components.log_prob(z.unsqueeze(-2)).sum(-1)).logsumexp(-1)
    else:
        log_mixture = (q.unsqueeze(-1) * components.cdf(z.unsqueeze(-2))).logsumexp(-2).sum(-1)
    log_prior = Normal(0.0, 1.0, validate_args=False).log_prob(z).sum(-1)
    return (q.movedim(-1, 0) * (log_mixture - log_prior).mean(1)).sum(0)
