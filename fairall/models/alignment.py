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

import torch
import torch.nn.functional as F  # noqa: N812
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from fairall.data.people import People
from fairall.models.vae import ConditionalVAE
from fairall.nn.stacked import in_chunks


@torch.no_grad()
def matching_frame(vae: ConditionalVAE, people: People) -> Tensor:
    """Signed permutation after which the latent of each group depends on the features as that of one does.

    That one is S = +1, or the largest of more than two groups. Labels are not used. Axes are compared by
    their covariances with the features, standardised within the group: the signed permutation P maximises the
    inner product of the covariances of the one group with those of the other after P, which is an assignment
    problem (Kuhn 1955).

    Returns:
        Of the shape of `vae.frame`, to be multiplied with that from the right; the identity for the group
        that others are matched with, and where one of the two has fewer than two people.
    """
    n_seeds, n_groups, size, _ = vae.frame.shape
    x, s = people.x.expand(n_seeds, -1, -1), people.s.expand(n_seeds, -1)
    z = in_chunks(lambda x, s: vae.encode(x, s)[0], x, s)
    frames = torch.zeros_like(vae.frame)
    for own_frames, own_z, own_x, group in zip(frames, z, x, vae.group(s), strict=True):
        loadings = [_loadings(own_z[group == g], own_x[group == g]) for g in range(n_groups)]
        first = 1 if n_groups == 2 else int(group.mode().values)
        for g, frame in enumerate(own_frames):
            # Of one person or none, and of a diverged VAE, nothing is known: the assignment is the identity.
            match = torch.eye(size) if g == first else (loadings[g] @ loadings[first].mT).nan_to_num()
            rows, columns = linear_sum_assignment(match.abs().numpy(), maximize=True)
            frame[rows, columns] = torch.where(match[rows, columns] < 0, -1.0, 1.0)
    return frames


def _loadings(z: Tensor, x: Tensor) -> Tensor:
    """Covariances of z (N, Z) with the standardised features x (N, D), times √N, shape (Z, D)."""
    return (z - z.mean(0)).mT @ F.normalize(x - x.mean(0), dim=0)
