"""Policies derived from a semi-supervised VAE (section 4.2, appendix D.4).

`clf` is the classifier q(ũ = 1 | x, s), which sees s and has no fairness constraint, `dec` the decoder
p(ũ = 1 | z, s), which sees s. `z_dec` (the paper's choice), `z_clf` and `z_label` are π^Z, a net of z alone
that is trained on the applicants of every step.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fairall.data.people import Decided
from fairall.models.elbo import imputation, reparameterize
from fairall.models.learner import Setting
from fairall.models.objectives import classification_risk, cost_sensitive_cross_entropy
from fairall.models.vae import SemiSupervisedVAE
from fairall.nn.noise import RandomNumbers
from fairall.nn.stacked import StackedMLP, average_probability
from fairall.runtime.randomness import SeedStreams

NET_POLICIES = ("z_dec", "z_clf", "z_label")
POLICIES = (*NET_POLICIES, "clf", "dec")


def acceptance(
    policy: str,
    model: SemiSupervisedVAE,
    net: StackedMLP | None,
    x: Tensor,
    s: Tensor,
    streams: SeedStreams,
    n_samples: int,
) -> Tensor:
    """π(d=1 | x, s) = Σ_ũ q(ũ | x, s)·E_{z ~ q(z | x, s, ũ)}[π(z)], shape (E, B); of `clf` q(ũ = 1 | x, s).

    Both values of ũ use the same antithetic ε. Terms odd in ε then cancel, which halves the number of samples
    needed for a given error (docs/protocols.md).

    The streams draw ε for `n_samples` of z per person and ũ, an even number.
    """
    logit = model.classify(x, s)
    if policy == "clf":
        return torch.sigmoid(logit)
    loc, scale = model.posteriors(x, s)
    noise = streams.normal_samples(x.shape[1], loc.shape[-1], n_samples)
    if net is None:
        z = torch.cat([reparameterize(loc[:, :, j], scale[:, :, j], noise) for j in (0, 1)], dim=-1)
        accepts = model.decoded_utility(z, s).unflatten(-1, (2, -1)).mean(-1)
    else:
        accepts = average_probability(net, loc, scale, noise)
    q = imputation(logit)
    return q[..., 0] * accepts[..., 0] + q[..., 1] * accepts[..., 1]


def net_loss(
    policy: str,
    model: SemiSupervisedVAE,
    net: StackedMLP,
    batch: Decided,
    noise: RandomNumbers,
    setting: Setting,
) -> Tensor:
    """Cost-sensitive cross-entropy of π^Z with what it is to decide, shape (E,).

    `z_label` learns the labels of the accepted, weighted by 1/π; `z_clf` and `z_dec` learn from everybody
    whether the classifier's or the decoder's estimate of p(ũ = 1) is at least c.
    """
    with torch.no_grad():
        z = model.draw_latent(batch, noise)
    logit = net(model.vae.framed(z, batch.s), noise).squeeze(-1)
    if policy == "z_label":
        return classification_risk(logit, batch, setting)
    target = net_target(policy, model, batch, z, setting.cost)
    return cost_sensitive_cross_entropy(logit, target, setting.cost).mean(-1)


@torch.no_grad()
def net_target(policy: str, model: SemiSupervisedVAE, batch: Decided, z: Tensor, cost: float) -> Tensor:
    """The decisions that `z_clf` or `z_dec` learns for latents z (E, B, Z) in learnt axes, shape (E, B)."""
    if policy == "z_clf":
        # The classifier's loss weighs labels by c and 1 − c; the shift of the logit undoes that.
        estimate = torch.sigmoid(model.classify(batch.x, batch.s) + math.log(cost / (1.0 - cost)))
    else:
        estimate = model.decoded_utility(z.unsqueeze(-1), batch.s, framed=False).squeeze(-1)
    return (estimate >= cost).to(estimate.dtype)
