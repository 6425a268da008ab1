"""One code for both groups: which latent axis of one group says what an axis of the other says.

A latent that is independent of s need not mean the same for both groups. Encoder and decoder see s, so a
VAE may write what matters on one axis for S = +1 and on another, or with the opposite sign, for S = −1. Its
ELBO is the same, since N(0, I) and diagonal Gaussians stay what they are where axes are permuted and signs
changed, but a policy that sees z alone cannot use such a latent. By the same token a permutation with signs
undoes it at no cost to the ELBO, once it is known which axis belongs to which.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from fairall.data.people import People
from fairall.models.vae import ConditionalVAE
from fairall.nn.chunks import in_chunks


@torch.no_grad()
def matching_frame(vae: ConditionalVAE, people: People) -> Tensor:
    """The signed permutation with which the latent of S = −1 depends on the features as that of S = +1 does.

    Labels are not used. An axis is known by its covariances with the features, standardised within the group;
    of all signed permutations P the one is taken that maximises the inner product of the covariances of one
    group with those of the other after P, which is an assignment problem (Kuhn 1955).

    Args:
        vae: of Phase I, E replicates.
        people: N people of both groups.

    Returns:
        Shape (E, Z, Z), multiplied from the right; the identity where a group has fewer than two people.
    """
    n_seeds = len(vae.frame)
    x, s = people.x.expand(n_seeds, -1, -1), people.s.expand(n_seeds, -1)
    z = in_chunks(lambda x, s: vae.encode(x, s)[0], x, s)
    advantaged = people.s > 0
    frames = torch.eye(vae.latent_size).repeat(n_seeds, 1, 1)
    if min(int(advantaged.sum()), int((~advantaged).sum())) < 2:
        return frames
    upper, lower = (_loadings(z[:, group], people.x[group]) for group in (advantaged, ~advantaged))
    agreement = (lower @ upper.mT).nan_to_num().double().numpy()
    for frame, match in zip(frames, agreement, strict=True):
        rows, columns = linear_sum_assignment(np.abs(match), maximize=True)
        frame.zero_()
        frame[rows, columns] = torch.from_numpy(np.where(match[rows, columns] < 0, -1.0, 1.0)).float()
    return frames


def _loadings(z: Tensor, x: Tensor) -> Tensor:
    """Covariances of z (E, N, Z) with the standardised features x (N, D), shape (E, Z, D)."""
    centred = x - x.mean(0)
    standardised = centred / centred.std(0).clamp(min=1e-6)
    return (z - z.mean(1, keepdim=True)).mT @ standardised / len(x)
