"""Overlap of past decisions with people: how much known labels weigh, and regions without any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from fairall.errors import count
from fairall.tables.features import DISCRETE, Feature

EXPECTED = 12  # least expected labels of a region where none is known; the probability is e^-12 = 1/160,000
RARE = 0.005  # share of known labels up to which a region may be closed
LEAVES, LEAST_ROWS = 6, 5  # of a tree, and rows of a leaf; more leaves fit the noise of past decisions
LABEL_WEIGHT = 3.0  # of all known labels by that of the policy's acceptances: leaves of few labels come first
MOST_ROWS, MOST_CELLS = 20_000, 2_000_000  # that the tree is fitted on
MOST_CLOSED = 0.08  # share of a policy's acceptances that may be in closed regions
LEAST_EFFECTIVE = 30  # effective sample size below which mean utility is too uncertain
TOTAL_TOLERANCE = 0.1  # of the sum of 1/π, relative
BINS = 10  # of a real feature or a count


def effective_sample_size(weight: np.ndarray) -> float:
    """(Σ w)² / Σ w² of weights (N,), the number of equally weighted people worth as much (Kish 1965).

    0 where no weight is positive.

    References:
        Kish, L. (1965). Survey Sampling. Wiley.

    Examples:
        >>> effective_sample_size(np.array([1.0, 1.0, 0.0]))
        2.0
    """
    total = float((weight**2).sum())
    return float(weight.sum()) ** 2 / total if total > 0 else 0.0


def closed_regions(
    groups: Mapping[str, np.ndarray],
    features: Sequence[Feature],
    x: pd.DataFrame,
    inputs: np.ndarray,
    names: Sequence[str],
    known: np.ndarray,
    wanted: np.ndarray,
) -> list[tuple[str, np.ndarray]]:
    """Regions from which a policy accepts people, and the past decisions revealed hardly any label.

    A tree of at most `LEAVES` leaves tells people whom the policy accepts from people with a known label, as
    in the searches for violations of positivity by Karavani et al. (2019) and Danelian et al. (2023). A leaf
    is closed if its share of known labels is at most `RARE` and so few have a probability below e^-`EXPECTED`
    (Poisson) by two predictions: the share of all rows, and a logistic regression fitted outside of such
    leaves. The latter is low where acceptance becomes rare smoothly, as at the low end of a score. The
    probability is far below usual levels because the tree has searched for such leaves.

    Args:
        groups: masks of the groups by name, shape (N,).
        features: that name a region.
        x: their values, codes or numbers, NaN where a number is missing, a column for each feature.
        inputs: of tree and regression, shape (N, D).
        names: the feature of each input, "" of the groups, length D.
        known: whose label is known, shape (N,), bool, some of them.
        wanted: acceptance probabilities of the policy, not all 0, shape (N,).

    Returns:
        How many of the rows of which region have a label, in words, and its mask (N,), of each closed leaf.

    References:
        Karavani, E., Bak, P. and Shimoni, Y. (2019). A discriminative approach for finding and characterizing
        positivity violations using decision trees. arXiv:1907.08127.
        Danelian, G., Foucher, Y., Leger, M., Le Borgne, F. and Chatton, A. (2023). Identification of
        in-sample positivity violations using regression trees: the PoRT algorithm. Journal of Causal
        Inference.
    """
    # These take most of a second, which runs that read no decisions need not spend.
    from scipy.stats import poisson
    from sklearn.linear_model import LogisticRegression
    from sklearn.tree import DecisionTreeRegressor

    accepted = wanted / wanted.sum()
    weight = accepted + LABEL_WEIGHT * known / known.sum()
    n_rows = min(MOST_ROWS, MOST_CELLS // inputs.shape[1])
    rows = np.random.default_rng(0).permutation(len(known))[:n_rows]
    rows = rows[weight[rows] > 0]
    tree = DecisionTreeRegressor(max_leaf_nodes=LEAVES, min_samples_leaf=LEAST_ROWS, random_state=0)
    tree.fit(inputs[rows], accepted[rows] / weight[rows], sample_weight=weight[rows])
    leaf = tree.apply(inputs)
    size, labels = np.bincount(leaf), np.bincount(leaf, weights=known)

    def closed(expected: np.ndarray) -> np.ndarray:
        return np.flatnonzero((labels <= RARE * size) & (poisson.logcdf(labels, expected) <= -EXPECTED))

    elsewhere = ~np.isin(leaf, closed(size * known.mean()))
    if elsewhere.all():
        return []
    smooth = LogisticRegression(solver="newton-cholesky").fit(inputs, known, elsewhere)
    chance = np.minimum(smooth.predict_proba(inputs)[:, 1], known.mean())
    regions = []
    for node in closed(np.bincount(leaf, weights=chance)):
        members = leaf == node
        path = tree.tree_.feature[tree.decision_path(inputs[members][:1]).indices]
        tells = {names[column] for column in path if column >= 0}
        words = [" or ".join(name for name, rows in groups.items() if rows[members].any())] * ("" in tells)
        words += [region_name(one, x[one.name][members]) for one in features if one.name in tells]
        shown = f"{int(labels[node]) or 'none'} of {count(int(size[node]), 'row')} {' '.join(words)}"
        regions.append((shown, members))
    return regions


def feature_regions(feature: Feature, values: pd.Series) -> Iterator[tuple[str, np.ndarray]]:
    """Names and masks (N,) of the levels of a feature, or of the deciles of its numbers and the missing ones.

    Args:
        feature: that names them.
        values: its codes or numbers, NaN where a number is missing, shape (N,).
    """
    place = values.to_numpy(dtype=float)
    if feature.kind not in DISCRETE:
        place = bins_of(place, BINS)
    for number in np.unique(place):
        rows = place == number
        yield region_name(feature, values[rows]), rows


def bins_of(values: np.ndarray, n_bins: int, frequent: float = 1.0) -> np.ndarray:
    """Numbers of the bins of values (N,), which end at quantiles; NaN have the last bin, shape (N,).

    Args:
        values: numbers or NaN.
        n_bins: number of bins of about as many values; fewer where several ends are equal.
        frequent: a value that more than this share of the others equal has a bin of its own.
    """
    known = values[~np.isnan(values)]
    distinct, times = np.unique(known, return_counts=True)
    often = distinct[times > frequent * len(known)]
    ends = np.quantile(known, np.linspace(0, 1, n_bins + 1)[1:]) if len(known) else known
    # A bin is (low, high]; that of a frequent value is (the number before it, the value].
    return np.searchsorted(np.unique([*ends, *np.nextafter(often, -np.inf), *often]), values)


def region_name(feature: Feature, values: pd.Series) -> str:
    """A region by the values (N,) of a feature in it, NaN where a number is missing."""
    if feature.kind in DISCRETE:
        levels = "/".join(feature.words[feature.codes.index(code)] for code in np.unique(values))
        return f"with {feature.name}={levels}"
    ends = "missing" if values.isna().all() else f"from {values.min():g} to {values.max():g}"
    return f"with {feature.name} {ends}"
