"""Which rows are of the same person, where no column says so."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy.stats import poisson

from fairall.errors import count
from fairall.tables.cells import row_number
from fairall.tables.features import Kind

BY_CHANCE = 0.1  # of the pairs of equal rows; where chance explains more, rows are of different people
LEVEL = 0.01  # probability of as many pairs by chance, above which rows are of different people
UNSEEN = 3.0  # pairs: 95 % bound of the expected number of what was never seen (rule of three)
SAMPLED = 20_000  # pairs of rows, for the dependence between columns


def repeated(
    x: pd.DataFrame, kinds: Mapping[str, Kind], group: np.ndarray, keyword: str
) -> tuple[np.ndarray | None, list[str]]:
    """Number of the distinct row of each row, shape (N,), if equal rows must be of one person, and a note.

    They must be where equality by chance is improbable given how often values occur (`_expected_pairs`). A
    row without any real number is compared with none.

    Args:
        x: numbers and codes of features, NaN where missing, shape (N, D).
        kinds: of the features.
        group: number of the group, shape (N,).
        keyword: by which a column of persons is declared, for the note.
    """
    real = x[[name for name, kind in kinds.items() if kind is Kind.REAL]]
    if real.empty:
        return None, []
    unknown = real.isna().all(axis=1).to_numpy()
    numbers = pd.util.hash_pandas_object(real, index=False).to_numpy()
    others = pd.util.hash_pandas_object(
        x.drop(columns=real.columns).assign(**{"": group}), index=False
    ).to_numpy()
    row = pd.factorize(numbers * np.uint64(1_000_003) + others)[0]
    row[unknown] = row.max() + 1 + np.arange(unknown.sum())
    repeats = pd.Series(row).duplicated().to_numpy()
    if not repeats.any():
        return None, []
    second = int(repeats.argmax())
    first = int((row == row[second]).argmax())
    note = (
        f"rows {row_number(x, first)} and {row_number(x, second)} are equal in all features and the group, "
        f"and {count(int(repeats.sum()), 'row')} repeat an earlier one"
    )
    once = ~repeats & ~unknown
    chance = _expected_pairs(x.drop(columns=real.columns), group, numbers[once], others[once])
    pairs = _pairs(row)
    if chance > BY_CHANCE * pairs or poisson.sf(pairs - 1, chance) > LEVEL:
        return None, [
            f"{note}, perhaps by chance, and are taken to be of other people; if not, give {keyword}"
        ]
    return np.unique(row, return_inverse=True)[1], [
        f"{note}, and are taken to be of the same person; give {keyword}"
    ]


def _expected_pairs(
    discrete: pd.DataFrame, group: np.ndarray, numbers: np.ndarray, others: np.ndarray
) -> float:
    """Pairs of N rows that are equal by chance, an estimate that errs upwards.

    The product of the number of pairs; of the probability that two rows agree in group and discrete features,
    multiplied over columns, each given the earlier one that tells most about it; and of the probability
    that the real numbers of two different people agree. The last is estimated from the distinct rows: from
    those that agree in everything else, which is never where the other columns determine the numbers (as a
    rate that is set by product and sex), and from those that do not.

    Args:
        discrete: features that are not real, shape (N, D).
        group: shape (N,).
        numbers: a hash of the real numbers of each distinct row, shape (K,).
        others: likewise, of the other columns.
    """
    n, distinct = len(group), len(numbers)
    within = _pairs(others)
    if within == 0:
        agree = 1.0
    else:
        apart = distinct * (distinct - 1) / 2 - within
        agree = max(UNSEEN / (within + UNSEEN), (_pairs(numbers) + UNSEEN) / (apart + UNSEEN))
    draw = np.random.default_rng(0)
    one, other = draw.integers(n, size=SAMPLED), draw.integers(n, size=SAMPLED)
    one, other = one[one != other], other[one != other]
    columns = np.column_stack([group, *(discrete[name].fillna(np.inf).to_numpy() for name in discrete)])
    equal = np.column_stack([of[one] == of[other] for of in columns.T]).astype(float)
    both = equal.T @ equal + 1.0
    order = np.argsort(both.diagonal(), kind="stable")
    chance = agree * both[order[0], order[0]] / (len(one) + 1)
    for k, j in enumerate(order[1:], start=1):
        earlier = order[:k]
        chance *= float((both[earlier, j] / both[earlier, earlier]).max())
    return chance * n * (n - 1) / 2


def _pairs(values: np.ndarray) -> float:
    """Number of pairs of equal values."""
    times = np.unique(values, return_counts=True)[1].astype(float)
    return float((times * (times - 1)).sum() / 2)
