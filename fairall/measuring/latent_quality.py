"""Quality of a latent: prediction of s and of the label from it, and reconstruction of x."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import torch

from fairall.data.features import DISCRETE, Schema
from fairall.data.people import People
from fairall.models.learner import Learner
from fairall.models.logistic import ridge
from fairall.models.vae import FEW
from fairall.tables.groups import sides

ENOUGH = 10_000  # training people of a regression on a latent of some tens of dimensions
NAMES = """
    s_balanced_accuracy s_auc label_balanced_accuracy label_auc variance_gap label_agreement s_mmd
    ground_truth_information
""".split()
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
    `variance_gap` and `label_agreement`.
    Of more than two groups these, and the measures of `s`, are those of the worst of `pairs_of_groups`, and
    `latent_s_mmd` is the largest `mmd` of a pair.
    `latent_ground_truth_information`: mutual information of z and y in nats, where y is known.
    """
    train = train.rows(torch.arange(min(ENOUGH, len(train))))
    z_train, z_held_out = latent(learner, train, n_seeds), latent(learner, held_out, n_seeds)
    if z_train is None or z_held_out is None:
        return {}
    n_groups, truth = schema.n_groups, held_out.ground_truth
    of_people = [
        (z, *(of.expand(n_seeds, -1).numpy() for of in (people.s, people.label > 0, label_weight(people))))
        for z, people in ((z_train, train), (z_held_out, held_out))
    ]
    values = np.full((len(NAMES), n_seeds), np.nan)
    for e in sound(z_train, z_held_out):
        (z_fit, s_fit, *label_fit), (z, s, *label) = ([of[e] for of in part] for part in of_people)
        worst = [(np.nan,) * 3]
        for pair in pairs_of_groups(n_groups, s_fit, s):
            of_pair, first, good, weight = in_pair(pair, z, s, *label)
            opposed = -label_agreement(of_pair, good, first, weight)
            distance = mmd(of_pair[first], of_pair[~first]) if n_groups > 2 else np.nan
            worst.append((variance_gap(of_pair, first), opposed, distance))
        gap, opposed, distance = np.fmax.reduce(worst)
        of_s = readability_of_s(z_fit, z, s_fit, s, n_groups)
        of_label = readability((z_fit, *label_fit), (z, *label))
        of_truth = np.nan if truth is None else mutual_information(z, truth.expand(n_seeds, -1)[e].numpy())
        values[:, e] = *of_s, *of_label, gap, -opposed, distance, of_truth
    absent = ["s_mmd"] * (n_groups == 2) + ["ground_truth_information"] * (truth is None)
    measures = {
        f"latent_{name}": of_seeds for name, of_seeds in zip(NAMES, values, strict=True) if name not in absent
    }

    x, s = stacked(held_out, n_seeds)
    restored = learner.reconstruction(x, s)
    if restored is not None:
        for i, feature in enumerate(schema):
            error = (restored[..., i] - x[..., i]).abs()
            if feature.kind in DISCRETE:
                error = (error > 0).float()
            measures[f"reconstruction_error_{feature.name}"] = error.mean(-1).numpy()
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
    z, other = z[:FOR_MMD], other[:FOR_MMD]
    n, m, both = len(z), len(other), np.concatenate([z, other])
    squared = np.square(both[:, None] - both).sum(-1)
    kernel = np.exp(-squared / max(np.median(squared), 1e-12))
    within = (kernel[:n, :n].sum() - n) / (n * (n - 1)) + (kernel[n:, n:].sum() - m) / (m * (m - 1))
    return float(within - 2.0 * kernel[:n, n:].mean())


def variance_gap(z: np.ndarray, advantaged: np.ndarray) -> float:
    """Largest difference between the groups of the variance of a latent mean, max_j |Var₊[z_j] − Var₋[z_j]|.

    Near 0 where both groups use the same axes; about 1 where information is on one axis in one group and on
    another axis in the other.

    Args:
        z: latent means, shape (N, Z).
        advantaged: membership of S = +1, shape (N,), bool.

    Returns:
        0 or more; NaN where a group is absent.
    """
    if advantaged.all() or not advantaged.any():
        return np.nan
    return float(np.abs(z[advantaged].var(0) - z[~advantaged].var(0)).max())


def label_agreement(
    z: np.ndarray, good: np.ndarray, advantaged: np.ndarray, weight: np.ndarray | None = None
) -> float:
    """Cosine between the two groups' directions of z in which the label gets more likely.

    1: the same direction in both groups; 0: orthogonal directions (other axes); −1: opposite directions.
    Directions are the coefficients of logistic regressions.

    Args:
        z: latent means, shape (N, Z).
        good: the label, shape (N,), bool.
        advantaged: membership of S = +1, shape (N,), bool.
        weight: of each label, 0 where it is unknown, shape (N,); None where all are known.

    Returns:
        In [−1, 1]; NaN where a group lacks one of the labels.
    """
    first, second = label_directions(z, good, advantaged, weight)
    return float(first @ second)


def label_directions(
    z: np.ndarray, good: np.ndarray, advantaged: np.ndarray, weight: np.ndarray | None = None
) -> np.ndarray:
    """Directions of z in which the label gets more likely, by logistic regression in S = +1 and in S = −1.

    Takes what `label_agreement` takes.

    Returns:
        Two unit vectors, shape (2, Z); NaN where a group lacks one of the labels.
    """
    directions = np.full((2, z.shape[1]), np.nan)
    weight = np.ones(len(z)) if weight is None else weight
    for direction, group in zip(directions, (advantaged, ~advantaged), strict=True):
        rows = group & (weight > 0)
        if len(set(good[rows])) == 2:
            slope = ridge(z[rows], good[rows], 1.0, weight[rows], standardises=False)[:-1]
            direction[:] = slope / (np.linalg.norm(slope) or np.nan)
    return directions


def mutual_information(z: np.ndarray, y: np.ndarray, *, neighbours: int = 10) -> float:
    """I(z; y) of continuous z and discrete y by nearest neighbours (Ross 2014).

    ψ(N) + ψ(k) − mean[ψ(N_y) + ψ(m)]: N_y people share a person's y, the k-th nearest of those is at some
    distance, and m people of any y are nearer than that.

    Args:
        z: latents, shape (N, Z).
        y: values, shape (N,).
        neighbours: k.

    Returns:
        In nats, up to an error that can make it slightly negative; NaN where a value has k people or fewer.

    References:
        Ross, B. C. (2014). Mutual information between discrete and continuous data sets. PLoS ONE 9(2).
    """
    from scipy.spatial import KDTree  # few data have y
    from scipy.special import digamma

    values, counts = np.unique(y, return_counts=True)
    if counts.min() <= neighbours:
        return np.nan
    everybody, negative = KDTree(z), 0.0
    for value, count in zip(values, counts, strict=True):
        alike = z[y == value]
        distance, _ = KDTree(alike).query(alike, [neighbours + 1])  # the nearest is oneself
        radius = np.nextafter(distance[:, 0], 0.0)
        nearer = everybody.query_ball_point(alike, radius, return_length=True)
        negative += (count * digamma(count) + digamma(nearer).sum()) / len(z)
    return float(digamma(len(z)) + digamma(neighbours) - negative)


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
    (z, fitted, weight), (z_held_out, target, held_out_weight) = (
        [values[part[2] > 0] for values in part] for part in (train, held_out)
    )
    if len(set(fitted)) < 2 or len(set(target)) < 2:
        return np.nan, np.nan
    scale = z.std(0) + 1e-6
    of_target = np.bincount(fitted, weight)  # both values count alike
    balanced = weight * weight.sum() / (2 * of_target[fitted.astype(int)])
    *slopes, intercept = ridge(z / scale, fitted, 1.0, balanced, standardises=False)
    score = z_held_out / scale @ slopes + intercept
    return balanced_accuracy(target, score > 0, held_out_weight), auc(target, score, held_out_weight)


def balanced_accuracy(target: np.ndarray, predicted: np.ndarray, weight: np.ndarray) -> float:
    """Mean over both values of a binary target of the share that is predicted, by weights; all shape (N,)."""
    shares = [
        np.average(predicted[target == value] == value, weights=weight[target == value]) for value in (0, 1)
    ]
    return float(np.mean(shares))


def auc(target: np.ndarray, score: np.ndarray, weight: np.ndarray) -> float:
    """Share of the pairs of both values of a binary target whose scores are in their order, by weights.

    A pair of equal scores counts half. All shape (N,).
    """
    order = np.argsort(score[~target])
    below = np.append(0.0, np.cumsum(weight[~target][order]))  # weight of those with lower scores
    others = score[~target][order]
    ends = [below[np.searchsorted(others, score[target], side)] for side in ("left", "right")]
    return float(np.average(np.mean(ends, 0), weights=weight[target]) / below[-1])
