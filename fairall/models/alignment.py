"""Alignment of the latent axes of the groups by signed permutations.

A latent that is independent of s need not mean the same for both groups. Encoder and decoder see s, so a
VAE may encode the same information on one axis for S = +1 and on another, or with the opposite sign, for
S = −1. The ELBO does not distinguish the two, since N(0, I) and diagonal Gaussians are closed under
permutations and changes of sign of the axes, but a policy of z alone cannot use such a latent. For the same
reason a signed permutation of the axes of one group aligns them without changing the ELBO.

References:
    Kuhn: The Hungarian method for the assignment problem, Naval Research Logistics Quarterly 1955.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from fairall.data.people import People
from fairall.models.vae import ConditionalVAE
from fairall.nn.stacked import in_chunks


@torch.no_grad()
def matching_frame(vae: ConditionalVAE, people: People) -> Tensor:
    """Signed permutation after which the latent of S = −1 depends on the features as that of S = +1 does.

    Labels are not used. Axes are compared by their covariances with the features, standardised within the
    group: the signed permutation P maximises the inner product of the covariances of one group with those of
    the other after P, which is an assignment problem (Kuhn 1955). More than two are matched with the largest.

    Returns:
        Of the shape of `vae.frame`, multiplied from the right; the identity for the group that others are
        matched with, and where one of the two has fewer than two people.
    """
    n_seeds = len(vae.frame)
    x, s = people.x.expand(n_seeds, -1, -1), people.s.expand(n_seeds, -1)
    z = in_chunks(lambda x, s: vae.encode(x, s)[0], x, s)
    frames, number = torch.eye(vae.latent_size).repeat(*vae.frames.shape[:2], 1, 1), vae.frame_number(s)
    for e, of_groups in enumerate(frames):
        first = number[e].mode().values if vae.inputs.n_groups > 2 else -1
        for g, frame in enumerate(of_groups):
            one, other = number[e] == first, number[e] == g
            if g == first or min(int(one.sum()), int(other.sum())) < 2:
                continue
            upper, lower = (_loadings(z[e, group], x[e, group]) for group in (one, other))
            match = (lower @ upper.mT).nan_to_num().double().numpy()
            rows, columns = linear_sum_assignment(np.abs(match), maximize=True)
            frame.zero_()
            frame[rows, columns] = torch.from_numpy(np.where(match[rows, columns] < 0, -1.0, 1.0)).float()
    return frames.view_as(vae.frame)


def _loadings(z: Tensor, x: Tensor) -> Tensor:
    """Covariances of z (N, Z) with the standardised features x (N, D), shape (Z, D)."""
    centred = x - x.mean(0)
    standardised = centred / centred.std(0).clamp(min=1e-6)
    return (z - z.mean(0)).mT @ standardised / len(x)
