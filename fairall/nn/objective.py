"""What a learner of Phase II tells its compiled training, which imports no learner."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Objective(NamedTuple):
    """The loss of a VAE, by default that of Phase I, and that of the policy net, for compiled twins.

    Numba's cache does not notice that fields change places: then `kernels.py` must change too.

    Attributes:
        beta: weight of the KL terms.
        min_scale: least scale of q(z | x, s, ũ).
        n_elbo: samples L of an ELBO.
        n_kl: samples K of the KL term of U.
        alpha: weight of R.
        cost: c.
        dropout: of the classifier and of the policy net.
        unlabelled: whether U is part of the loss.
        trains_classifier: whether R is.
        density: whether the KL term of U is that of `KL.density`, see `elbo.mixture_kl`, and not of `KL.cdf`.
        stratified: whether samples are.
        learns_labels: whether the policy net learns labels (`z_label`).
        from_decoder: whether it learns what the decoder says (`z_dec`), and not the classifier.
    """

    beta: float
    min_scale: float
    n_elbo: int = 1
    n_kl: int = 0
    alpha: float = 0.0
    cost: float = 0.5
    dropout: float = 0.0
    unlabelled: bool = False
    trains_classifier: bool = False
    density: bool = True
    stratified: bool = False
    learns_labels: bool = False
    from_decoder: bool = False

    @property
    def numbers(self) -> tuple[Any, ...]:
        """The fields in the precision of the nets."""
        return tuple(np.float32(value) if isinstance(value, float) else value for value in self)
