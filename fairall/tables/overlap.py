"""Overlap of past decisions with people: how much known labels weigh, and regions without any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from fairall.tables.features import DISCRETE, Feature

EXPECTED = 10  # least expected labels of a reported region; none has probability < e^-10 = 1/22,000
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


def empty_regions(
    groups: Mapping[str, np.ndarray],
    features: Sequence[Feature],
    x: pd.DataFrame,
    found: np.ndarray,
    cells: Sequence[np.ndarray],
) -> list[tuple[str, np.ndarray]]:
    """Names and masks (N,) of groups and regions of a feature in which nobody is `found`.

    A region is a level of a discrete feature or consecutive deciles of a real feature or count, overall or
    within a group. It is returned if the share of the found predicts at least `EXPECTED` of them in it,
    unless it is part of another. Wider regions come first. NaN in x (N, D), where a number is missing, is a
    region of its own. `cells` are the `region_numbers`.
    """
    rate = found.mean()
    empty: list[tuple[str, np.ndarray]] = []
    for name, rows in _regions(groups, features, x, found, cells):
        within_another = any((rows <= others).all() for _, others in empty)
        if rows.sum() * rate >= EXPECTED and not within_another:
            empty.append((name, rows))
    return empty


def _regions(
    groups: Mapping[str, np.ndarray],
    features: Sequence[Feature],
    x: pd.DataFrame,
    found: np.ndarray,
    cells: Sequence[np.ndarray],
) -> Iterator[tuple[str, np.ndarray]]:
    """Names and masks (N,) of all groups and regions in which nobody is `found`."""
    yield from ((name, members) for name, members in groups.items() if not found[members].any())
    for group, members in {"": np.ones(len(found), dtype=bool), **groups}.items():
        those = np.flatnonzero(found & members)
        for feature, cell in zip(features, cells, strict=True):
            empty = np.flatnonzero(np.bincount(cell[those], minlength=int(cell.max()) + 1) == 0)
            if not len(empty):
                continue
            # Neighbouring empty deciles are one region.
            apart = (np.diff(empty) > 1) | (empty[1:] == BINS) | (feature.kind in DISCRETE)
            for run in np.split(empty, np.flatnonzero(apart) + 1):
                rows = np.isin(cell, run)
                if rows.any():
                    values = x[feature.name].to_numpy(dtype=float)[rows]
                    yield f"{group} {region_name(feature, values)}".lstrip(), rows & members


def feature_regions(
    feature: Feature, values: np.ndarray, cell: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
    """Names and masks (N,) of the regions of a feature with values and numbers of regions (N,)."""
    for i in np.unique(cell):
        rows = cell == i
        yield region_name(feature, values[rows]), rows


def region_numbers(features: Sequence[Feature], x: pd.DataFrame) -> list[np.ndarray]:
    """Number of the region of each row of x (N, D) in each feature, shapes (N,)."""
    return [_region_numbers(one, x[one.name].to_numpy(dtype=float)) for one in features]


def _region_numbers(feature: Feature, values: np.ndarray) -> np.ndarray:
    """Number of the level or decile of each value, `BINS` of a missing number, shape (N,)."""
    if feature.kind in DISCRETE:
        return np.searchsorted(feature.codes, values).astype(np.int16)
    missing = np.isnan(values)
    edges = np.unique(np.quantile(values[~missing], np.linspace(0, 1, BINS + 1)))
    return np.where(missing, BINS, np.searchsorted(edges[1:-1], values, side="left")).astype(np.int16)


def region_name(feature: Feature, values: np.ndarray) -> str:
    """A region by the values (N,) of a feature in it, NaN where a number is missing."""
    if feature.kind in DISCRETE:
        return f"with {feature.name}={'/'.join(feature.words[feature.codes.index(i)] for i in np.unique(values))}"
    known = values[~np.isnan(values)]
    return f"with {feature.name} " + (f"from {known.min():g} to {known.max():g}" if len(known) else "missing")
