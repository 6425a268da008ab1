"""Policies derived from a semi-supervised VAE (section 4.2, appendix D.4).

`clf` is the classifier q(ũ = 1 | x, s), which sees s and has no fairness constraint, `dec` the decoder
p(ũ = 1 | z, s), which sees s. `z_dec` (the paper's choice), `z_clf` and `z_label` are π^Z, a net of z alone
that is trained on the applicants of every step.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from fairall.config.schema import PolicyLoss, PolicyTarget
from fairall.data.people import Decided
from fairall.models.elbo import imputation, reparameterize
from fairall.models.learner import Setting
from fairall.models.objectives import cost_sensitive_cross_entropy, ips_weight, masked_mean
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


def threshold(policy: str, setting: Setting) -> float:
    """Least probability at which a deterministic policy accepts.

    The cost c where the policy estimates p(ũ = 1); ½ where its targets or its loss contain c.
    """
    plain = setting.protocol.policy_loss is PolicyLoss.plain
    drawn = setting.protocol.policy_target is PolicyTarget.sampled
    estimates = {"clf": False, "dec": True, "z_label": plain}.get(policy, plain and drawn)
    return setting.cost if estimates else 0.5


def net_loss(
    policy: str,
    model: SemiSupervisedVAE,
    net: StackedMLP,
    batch: Decided,
    noise: RandomNumbers,
    setting: Setting,
) -> Tensor:
    """Cross-entropy of π^Z with its targets, weighted, averaged over the rows to learn from, shape (E,)."""
    with torch.no_grad():
        z = model.draw_latent(batch, noise)
        target, weight, rows = net_targets(policy, model, batch, z, noise, setting)
    logit = net(model.vae.framed(z, batch.s), noise).squeeze(-1)
    if setting.protocol.policy_loss is PolicyLoss.cost_sensitive:
        loss = cost_sensitive_cross_entropy(logit, target, setting.cost)
    else:
        loss = F.binary_cross_entropy_with_logits(logit, target, reduction="none")
    return masked_mean(loss * weight, rows)


def net_targets(
    policy: str,
    model: SemiSupervisedVAE,
    batch: Decided,
    z: Tensor,
    noise: RandomNumbers,
    setting: Setting,
) -> tuple[Tensor, Tensor, Tensor]:
    """Targets of π^Z for latents z (E, B, Z) in learnt axes.

    `z_label` learns the labels of the accepted, weighted by 1/π; `z_clf` and `z_dec` learn for all applicants
    from the classifier's or the decoder's estimate of p(ũ = 1), which is thresholded at c, or drawn from.

    Returns:
        Decisions to learn, their weights, and a mask of the rows to learn from, each of shape (E, B).
    """
    protocol, cost = setting.protocol, setting.cost
    if policy == "z_label":
        weight = ips_weight(batch.propensity, batch.accepted, protocol.max_ips_weight)
        return batch.label, weight, batch.accepted
    if policy == "z_clf":
        # The classifier's loss weighs labels by c and 1 − c; the shift of the logit undoes that.
        estimate = torch.sigmoid(model.classify(batch.x, batch.s) + math.log(cost / (1.0 - cost)))
    else:
        estimate = model.decoded_utility(z.unsqueeze(-1), batch.s, framed=False).squeeze(-1)
    if protocol.policy_target is PolicyTarget.hard:
        target = estimate >= cost
    else:
        target = noise.uniform(*estimate.shape[1:]) < estimate
    return target.to(estimate.dtype), torch.ones_like(estimate), torch.ones_like(target)
