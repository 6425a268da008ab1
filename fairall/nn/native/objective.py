"""What a learner of Phase II tells its compiled training, which imports no learner."""

from __future__ import annotations

from typing import NamedTuple


class Objective(NamedTuple):
    """The loss of Phase II and that of the policy net in numbers, for a compiled twin.

    Numba's cache does not notice that fields change places: then `native/kernels.py` must change too.

    Attributes:
        n_batches: minibatches an epoch.
        n_elbo: samples L of an ELBO.
        n_kl: samples K of the KL term of U.
        alpha: weight of R.
        beta: weight of the KL terms.
        cost: c.
        dropout: of the classifier and of the policy net.
        min_scale: least scale of q(z | x, s, ũ).
        unlabelled: whether U is part of the loss.
        trains_classifier: whether R is.
        through_classifier: whether U sends a gradient into the classifier.
        density: whether the KL term of U is `elbo.mixture_kl`, and not `elbo.cdf_mixture_kl`.
        stratified: whether samples are.
        learns_labels: whether the policy net learns labels (`z_label`).
        from_decoder: whether it learns what the decoder says (`z_dec`), and not the classifier.
        hard: whether targets of the policy net are thresholded, and not drawn.
        cost_sensitive: whether its loss is.
    """

    n_batches: int
    n_elbo: int
    n_kl: int
    alpha: float
    beta: float
    cost: float
    dropout: float
    min_scale: float
    unlabelled: bool
    trains_classifier: bool
    through_classifier: bool
    density: bool
    stratified: bool
    learns_labels: bool
    from_decoder: bool
    hard: bool
    cost_sensitive: bool
