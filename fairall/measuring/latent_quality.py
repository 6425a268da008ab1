"""Quality of a latent: prediction of s and of the label from it, and reconstruction of x."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import torch

from fairall.data.features import DISCRETE, Schema
from fairall.data.people import People
from fairall.models.learner import Learner
from fairall.models.logistic import linear, ridge
from fairall.models.vae import FEW
from fairall.tables.groups import sides

ENOUGH = 10_000  # training people of a regression on a latent of some tens of dimensions
NAMES = """
    latent_s_balanced_accuracy latent_s_auc latent_label_balanced_accuracy latent_label_auc
    latent_variance_gap latent_label_agreement latent_s_mmd latent_ground_truth_information
""".split()
NEIGHBOURS = 10  # k of `mutual_information`
FOR_MMD = 500  # people of a group, all pairs of whom are compared


def representation_measures(
    learner: Learner, schema: Schema, train: People, held_out: People, n_seeds: int
) -> dict[str, np.ndarray]:
    """Quality of the latent, by name one value per seed, shape (E,); empty for methods without a latent.

    `latent_<target>_balanced_accuracy` and `latent_<target>_auc` for targets `s` and `label`: a logistic
    regression on E[z | x, s] of the training people (the first `ENOUGH` of them), scored on the held-out
    ones; 0.5 is chance, NaN where the target has one value only. Measures of the label are of the people
    whose label is known, weighted by `People.label_weight`.
    `reconstruction_error_<feature>`: mean absolute error on held-out people for real features (in training
    standard deviations) and counts, share of wrong values for the others.
    `latent_variance_gap` and `latent_label_agreement`: whether z has the same meaning in both groups, see
    `variance_gap`, and the cosine of `label_directions`: 1 for the same direction in both groups, 0 for other
    axes, −1 for opposite directions.
    Of more than two groups these, and the measures of `s`, are those of the worst of `pairs_of_groups`, and
    `latent_s_mmd` is the largest `mmd` of a pair; NaN of two groups.
    `latent_ground_truth_information`: mutual information of z and y in nats; NaN where y is not known.
    """
    train = train.rows(torch.arange(min(ENOUGH, len(train))))
    z_train, z_held_out = latent(learner, train, n_seeds), latent(learner, held_out, n_seeds)
    if z_train is None or z_held_out is None:
        return {}
    n_groups, values = schema.n_groups, np.full((len(NAMES), n_seeds), np.nan)
    for e in sound(z_train, z_held_out):
        people = held_out.replicate(e)
        (z_fit, s_fit, *label_fit), (z, s, *label) = (
            (of[e], some.s.numpy(), some.label.numpy() > 0, label_weight(some).numpy())
            for of, some in ((z_train, train.replicate(e)), (z_held_out, people))
        )
        worst = [(np.nan,) * 3]
        for pair in pairs_of_groups(n_groups, s_fit, s):
            of_pair, first, good, weight = in_pair(pair, z, s, *label)
            agreement = np.prod(label_directions(of_pair, good, first, weight), 0).sum()
            distance = mmd(of_pair[first], of_pair[~first]) if n_groups > 2 else np.nan
            worst.append((variance_gap(of_pair, first), -agreement, distance))
        gap, opposed, distance = np.fmax.reduce(worst)
        truth = people.ground_truth
        values[:, e] = (
            *readability_of_s(z_fit, z, s_fit, s, n_groups),
            *readability((z_fit, *label_fit), (z, *label)),
            gap,
            -opposed,
            distance,
            np.nan if truth is None else mutual_information(z, truth.numpy()),
        )
    measures = dict(zip(NAMES, values, strict=True))
    restored = learner.reconstruction(*stacked(held_out, n_seeds))
    if restored is not None:
        error = (restored - held_out.x).abs()
        discrete = torch.tensor([feature.kind in DISCRETE for feature in schema])
        errors = torch.where(discrete, (error > 0).float(), error).mean(1).numpy()
        measures |= {
            f"reconstruction_error_{name}": of for name, of in zip(schema.names, errors.T, strict=True)
        }
    return measures


def latent(learner: Learner, people: People, n_seeds: int) -> np.ndarray | None:
    """E[z | x, s] of N people, shape (E, N, Z), or None for methods without a latent."""
    z = learner.representation(*stacked(people, n_seeds))
    return None if z is None else z.numpy()


def pairs_of_groups(n_groups: int, *of_parts: np.ndarray) -> list[tuple[float, float]]:
    """The pairs of G groups, given s (N,) of each part of the people.

    Of more than two groups without those of fewer than `FEW` people in a part: the worst of many pairs would
    be the one with the fewest people.
    """
    large = [s for s in sides(n_groups) if all((part == s).sum() >= FEW for part in of_parts)]
    return list(combinations(large if n_groups > 2 else sides(2), 2))


def in_pair(pair: tuple[float, float], z: np.ndarray, s: np.ndarray, *values: np.ndarray) -> list[np.ndarray]:
    """The people in a pair of groups: their z (n, Z), who is of its first, (n,), bool, and their `values`."""
    members = np.isin(s, pair)
    return [of[members] for of in (z, s == pair[0], *values)]


def readability_of_s(
    z_train: np.ndarray, z_held_out: np.ndarray, s_train: np.ndarray, s_held_out: np.ndarray, n_groups: int
) -> np.ndarray:
    """`readability` of s from latents (N, Z) and (M, Z), s (N,) and (M,): of the worst pair of groups."""
    scores = [(np.nan, np.nan)]
    for pair in pairs_of_groups(n_groups, s_train, s_held_out):
        parts = (z_train, s_train), (z_held_out, s_held_out)
        scores.append(readability(*(in_pair(pair, z, s, np.ones(len(z))) for z, s in parts)))
    return np.fmax.reduce(scores)


def sound(*z: np.ndarray) -> np.ndarray:
    """Numbers of the seeds that have not diverged: whose latents (E, N, Z) are finite."""
    return np.flatnonzero(np.all([np.isfinite(of).all((1, 2)) for of in z], 0))


def mmd(z: np.ndarray, other: np.ndarray) -> float:
    """Squared maximum mean discrepancy of two groups' latents (N, Z) and (M, Z), unbiased, at most 2.

    The kernel is exp(−d²/m), d the distance of two people and m the median of d²; of each group the first
    `FOR_MMD` people count. About 0 where both are alike.

    References:
        Gretton, Borgwardt, Rasch, Schölkopf, Smola: A kernel two-sample test, JMLR 2012 (eq. 3).
    """
    from scipy.spatial.distance import cdist, pdist  # few data have more than two groups

    z, other = z[:FOR_MMD], other[:FOR_MMD]
    both, of = np.concatenate([z, other]), "sqeuclidean"
    median = max(np.median(cdist(both, both, of)), 1e-12)
    distances = pdist(z, of), pdist(other, of), cdist(z, other, of)
    own, others, between = (np.exp(-squared / median).mean() for squared in distances)
    return float(own + others - 2.0 * between)


def variance_gap(z: np.ndarray, advantaged: np.ndarray) -> float:
    """Largest difference between the groups of the variance of a latent mean, max_j |Var₊[z_j] − Var₋[z_j]|.

    Near 0 where both groups use the same axes; about 1 where information is on one axis in one group and on
    another axis in the other.

    Args:
        z: latent means, shape (N, Z).
        advantaged: membership of S = +1, shape (N,), bool; both groups are present.
    """
    return float(np.abs(z[advantaged].var(0) - z[~advantaged].var(0)).max())


def label_directions(
    z: np.ndarray, good: np.ndarray, advantaged: np.ndarray, weight: np.ndarray | None = None
) -> np.ndarray:
    """Directions of z in which the label gets more likely, by logistic regression in S = +1 and in S = −1.

    Args:
        z: latent means, shape (N, Z).
        good: the label, shape (N,), bool.
        advantaged: membership of S = +1, shape (N,), bool.
        weight: of each label, 0 where it is unknown, shape (N,); None where all are known.

    Returns:
        Two unit vectors, shape (2, Z); NaN where a group lacks one of the labels.
    """
    directions = np.full((2, z.shape[1]), np.nan)
    weight = np.ones(len(z)) if weight is None else weight
    for direction, group in zip(directions, (advantaged, ~advantaged), strict=True):
        if np.bincount(good[group], weight[group], 2).all():
            slope = ridge(z[group], good[group], 1.0, weight[group], standardises=False)[:-1]
            direction[:] = slope / (np.linalg.norm(slope) or np.nan)
    return directions


def mutual_information(z: np.ndarray, y: np.ndarray) -> float:
    """I(z; y) of continuous z and discrete y by nearest neighbours (Ross 2014).

    ψ(N) + ψ(k) − mean[ψ(N_y) + ψ(m)]: N_y people share a person's y, the k-th nearest of those, of k =
    `NEIGHBOURS`, is at some distance, and m people of any y are nearer than that.

    Args:
        z: latents, shape (N, Z).
        y: values, shape (N,).

    Returns:
        In nats, up to an error that can make it slightly negative; NaN where a value has k people or fewer.

    References:
        Ross, B. C. (2014). Mutual information between discrete and continuous data sets. PLoS ONE 9(2).
    """
    from scipy.spatial import KDTree  # few data have y
    from scipy.special import digamma

    _, of_person, counts = np.unique(y, return_inverse=True, return_counts=True)
    if counts.min() <= NEIGHBOURS:
        return np.nan
    distance = np.empty(len(z))
    for number in range(len(counts)):
        alike = z[of_person == number]
        distance[of_person == number] = KDTree(alike).query(alike, [NEIGHBOURS + 1])[0][
            :, 0
        ]  # oneself is one
    nearer = KDTree(z).query_ball_point(z, np.nextafter(distance, 0.0), return_length=True)
    negative = np.mean(digamma(counts)[of_person] + digamma(nearer))
    return float(digamma(len(z)) + digamma(NEIGHBOURS) - negative)


def label_weight(people: People) -> torch.Tensor:
    """Weight of each label, 1 where all are known and have none; shape (N,), float64."""
    return (people.labelled if people.label_weight is None else people.label_weight).double()


def stacked(people: People, n_seeds: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Features and s of people for each of E seeds, shapes (E, N, D) and (E, N)."""
    return people.x.expand(n_seeds, -1, -1), people.s.expand(n_seeds, -1)


def readability(train: Sequence[np.ndarray], held_out: Sequence[np.ndarray]) -> tuple[float, float]:
    """Balanced accuracy and AUC of a logistic regression that predicts a binary target from latents.

    Args:
        train: latents of the N people to learn on, (N, Z), their target, (N,), bool, and the weight of each,
            0 where the target is unknown, (N,).
        held_out: the same of the M people to be scored on.

    Returns:
        Both in [0, 1], 0.5 for chance; NaN where a target has one value only.
    """
    (z, fitted, weight), (z_held_out, target, held_out_weight) = train, held_out
    of_target = np.bincount(fitted, weight, 2)
    if not (of_target.all() and np.bincount(target, held_out_weight, 2).all()):
        return np.nan, np.nan
    scale = z[weight > 0].std(0) + 1e-6
    balanced = weight * weight.sum() / (2 * of_target[fitted.astype(int)])  # both values count alike
    score = linear(z_held_out / scale, ridge(z / scale, fitted, 1.0, balanced, standardises=False))
    # By hand, since scikit-learn's measures take most of a second to import.
    of_value = np.stack([held_out_weight * ~target, held_out_weight * target])
    accuracy = of_value @ ((score > 0) == target) / of_value.sum(1)
    levels, at = np.unique(score, return_inverse=True)
    negative, positive = (np.bincount(at, weight, len(levels)) for weight in of_value)
    below = negative.cumsum() - negative / 2  # a pair of equal scores counts half
    return float(accuracy.mean()), float(positive @ below / np.prod(of_value.sum(1)))
