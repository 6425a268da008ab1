"""Quality of a latent: prediction of s and of the label from it, and reconstruction of x."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import torch

from fairall.data.features import Kind, Schema
from fairall.data.people import People
from fairall.models.learner import Learner
from fairall.models.logistic import penalised
from fairall.models.vae import FEW
from fairall.tables.groups import sides

ENOUGH = 10_000  # training people of a regression on a latent of some tens of dimensions
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
    weights = _weight(train), _weight(held_out)
    s_train, s_held_out = (people.s.expand(n_seeds, -1).numpy() for people in (train, held_out))
    fitted, good = (people.label.expand(n_seeds, -1).numpy() > 0 for people in (train, held_out))
    names = ["s_balanced_accuracy", "s_auc", "label_balanced_accuracy", "label_auc"]
    names += ["variance_gap", "label_agreement"] + ["s_mmd"] * (schema.n_groups > 2)
    rows: list[tuple[float, ...]] = []
    for e, z in enumerate(z_held_out):
        of_label = readability(z_train[e], z, fitted[e], good[e], *weights)
        gaps, opposed, distances = [], [], []
        for pair in pairs_of_groups(schema.n_groups, s_train[e], s_held_out[e]):
            members, first = in_pair(s_held_out[e], pair)
            gaps.append(variance_gap(z[members], first))
            weight = None if weights[1] is None else weights[1][members]
            opposed.append(-label_agreement(z[members], good[e][members], first, weight))
            distances.append(mmd(z[members][first], z[members][~first]) if schema.n_groups > 2 else np.nan)
        of_s = readability_of_s(z_train[e], z, s_train[e], s_held_out[e], schema.n_groups)
        rows.append((*of_s, *of_label, largest(gaps), -largest(opposed), largest(distances)))
    columns = zip(*rows, strict=True)
    measures = {f"latent_{name}": np.array(column) for name, column in zip(names, columns, strict=False)}
    if held_out.ground_truth is not None:
        truth = held_out.ground_truth.expand(n_seeds, -1).numpy()
        informative = [mutual_information(*of_seed) for of_seed in zip(z_held_out, truth, strict=True)]
        measures["latent_ground_truth_information"] = np.array(informative)

    x, s = stacked(held_out, n_seeds)
    restored = learner.reconstruction(x, s)
    if restored is not None:
        for i, feature in enumerate(schema):
            error = (restored[..., i] - x[..., i]).abs()
            if feature.kind in (Kind.BINARY, Kind.CATEGORICAL):
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


def in_pair(s: np.ndarray, pair: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Who of people with s (N,) is of a pair of groups, (N,), and who of these of its first, (n,), bool."""
    members = np.isin(s, pair)
    return members, s[members] == pair[0]


def readability_of_s(
    z_train: np.ndarray, z_held_out: np.ndarray, s_train: np.ndarray, s_held_out: np.ndarray, n_groups: int
) -> tuple[float, float]:
    """`readability` of s from latents (N, Z) and (M, Z), s (N,) and (M,): of the worst pair of groups."""
    scores = []
    for pair in pairs_of_groups(n_groups, s_train, s_held_out):
        (train_rows, fitted), (held_out_rows, scored) = (in_pair(s, pair) for s in (s_train, s_held_out))
        scores.append(readability(z_train[train_rows], z_held_out[held_out_rows], fitted, scored))
    return largest([score[0] for score in scores]), largest([score[1] for score in scores])


def largest(values: Sequence[float]) -> float:
    """The largest value that is known; NaN where none is."""
    return max((value for value in values if value == value), default=np.nan)


def mmd(z: np.ndarray, other: np.ndarray) -> float:
    """Squared maximum mean discrepancy of two groups' latents (N, Z) and (M, Z), unbiased, at most 2.

    The kernel is exp(−d²/m), d the distance of two people and m the median of d²; of each group the first
    `FOR_MMD` people count. About 0 where both are alike; NaN where a seed has diverged.

    References:
        Gretton, Borgwardt, Rasch, Schölkopf, Smola: A kernel two-sample test, JMLR 2012 (eq. 3).
    """
    both = np.concatenate([z[:FOR_MMD], other[:FOR_MMD]])
    if not np.isfinite(both).all():
        return np.nan
    n, m = len(z[:FOR_MMD]), len(other[:FOR_MMD])
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
        0 or more; NaN where a group is absent or a seed has diverged.
    """
    if not np.isfinite(z).all() or advantaged.all() or not advantaged.any():
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
        In [−1, 1]; NaN where a group lacks one of the labels or a seed has diverged.
    """
    advantaged_direction, other_direction = label_directions(z, good, advantaged, weight)
    return (
        np.nan
        if advantaged_direction is None or other_direction is None
        else float(advantaged_direction @ other_direction)
    )


def label_directions(
    z: np.ndarray, good: np.ndarray, advantaged: np.ndarray, weight: np.ndarray | None = None
) -> list[np.ndarray | None]:
    """Directions of z in which the label gets more likely, by logistic regression in S = +1 and in S = −1.

    Takes what `label_agreement` takes.

    Returns:
        Two unit vectors, shape (Z,); None where a group lacks one of the labels or a seed has diverged.
    """
    directions: list[np.ndarray | None] = []
    labelled = np.ones(len(z), dtype=bool) if weight is None else weight > 0
    for group in (advantaged & labelled, ~advantaged & labelled):
        slope = np.zeros(z.shape[1])
        if np.isfinite(z).all() and len(set(good[group])) == 2:
            of_group = None if weight is None else weight[group]
            slope = penalised(z[group], good[group], 1.0, of_group)[:-1]
        size = np.linalg.norm(slope)
        directions.append(slope / size if size > 0 else None)
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
        In nats, up to an error that can make it slightly negative; NaN where a value has k people or fewer,
        or a seed has diverged.

    References:
        Ross, B. C. (2014). Mutual information between discrete and continuous data sets. PLoS ONE 9(2).
    """
    from scipy.spatial import KDTree  # few data have y
    from scipy.special import digamma

    values, counts = np.unique(y, return_counts=True)
    if not np.isfinite(z).all() or counts.min() <= neighbours:
        return np.nan
    everybody, negative = KDTree(z), 0.0
    for value, count in zip(values, counts, strict=True):
        alike = z[y == value]
        distance, _ = KDTree(alike).query(alike, [neighbours + 1])  # the nearest is oneself
        radius = np.nextafter(distance[:, 0], 0.0)
        nearer = everybody.query_ball_point(alike, radius, return_length=True)
        negative += (count * digamma(count) + digamma(nearer).sum()) / len(z)
    return float(digamma(len(z)) + digamma(neighbours) - negative)


def _weight(people: People) -> np.ndarray | None:
    return None if people.label_weight is None else people.label_weight.double().numpy()


def stacked(people: People, n_seeds: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Features and s of people for each of E seeds, shapes (E, N, D) and (E, N)."""
    return people.x.expand(n_seeds, -1, -1), people.s.expand(n_seeds, -1)


def readability(
    z_train: np.ndarray,
    z_held_out: np.ndarray,
    target_train: np.ndarray,
    target_held_out: np.ndarray,
    weight_train: np.ndarray | None = None,
    weight_held_out: np.ndarray | None = None,
) -> tuple[float, float]:
    """Balanced accuracy and AUC of a logistic regression that predicts a binary target from latents.

    Args:
        z_train: latents to learn on, shape (N, Z).
        z_held_out: latents to be scored on, shape (M, Z).
        target_train: targets of the people to learn on, shape (N,), bool.
        target_held_out: targets of the others, shape (M,), bool.
        weight_train: of the people to learn on, 0 where the target is unknown, shape (N,); None: alike.
        weight_held_out: of the others, shape (M,).

    Returns:
        Both in [0, 1], 0.5 for chance; NaN where a target has one value only or a seed has diverged.
    """
    if not (np.isfinite(z_train).all() and np.isfinite(z_held_out).all()):
        return np.nan, np.nan  # a seed that diverged
    fitted, scored = (
        np.ones(len(z)) if weight is None else weight
        for z, weight in ((z_train, weight_train), (z_held_out, weight_held_out))
    )
    z_train, target_train, fitted = (values[fitted > 0] for values in (z_train, target_train, fitted))
    z_held_out, target_held_out, scored = (
        values[scored > 0] for values in (z_held_out, target_held_out, scored)
    )
    if len(set(target_train)) < 2 or len(set(target_held_out)) < 2:
        return np.nan, np.nan
    scale = z_train.std(0) + 1e-6
    of_target = np.bincount(target_train, fitted)  # both values count alike
    balanced = fitted * fitted.sum() / (2 * of_target[target_train.astype(int)])
    *slopes, intercept = penalised(z_train / scale, target_train, 1.0, balanced)
    score = z_held_out / scale @ slopes + intercept
    return balanced_accuracy(target_held_out, score > 0, scored), auc(target_held_out, score, scored)


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
