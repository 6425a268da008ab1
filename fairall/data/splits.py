"""Splits of a table into the people of each phase (appendix D.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from fairall.config.checks import numpy_seed, open_unit
from fairall.errors import FairAllError

ROLES = ("train", "validation", "test", "pool")


@dataclass
class SplitConfig:
    """Shares of the held-out rows and of the pool (appendix D.2), and the random state."""

    held_out: float = open_unit()
    pool: float = open_unit()
    random_state: int = numpy_seed()


@dataclass(frozen=True)
class Splits:
    """Row numbers of a table, in order of use."""

    train: np.ndarray  # possible applicants of Phase II, including the pool
    validation: np.ndarray  # people for model selection
    test: np.ndarray  # people for reported measures
    pool: np.ndarray  # people of Phase I, which uses no label; the first rows are those of the warm-up
    strata: np.ndarray | None = None  # of every row of the table, shape (N,); each part has its share of each


def shifted(random_state: int, number: int) -> int:
    """The random state of split number `number`, 0 for the first."""
    return (random_state + number) % 2**32


def split(n_rows: int, config: SplitConfig, strata: np.ndarray | None = None) -> Splits:
    """Split rows 0..n_rows − 1 as the authors' code does: held-out rows are halved into validation and test.

    `strata` are numbers of shape (n_rows,), of which each part has its share.

    Raises:
        FairAllError: if a part would be empty, or of a stratum.
    """
    try:
        train, held_out = _halves(np.arange(n_rows), config.held_out, config.random_state, strata)
        validation, test = _halves(held_out, 0.5, config.random_state, strata)
    except ValueError as error:
        raise FairAllError(
            f"dataset.split.held_out={config.held_out:g}: {n_rows} rows cannot be cut so that training, "
            "validation and test set each have some; choose a share nearer to a half"
        ) from error
    return Splits(train, validation, test, _pool(train, config), strata)


def split_alike(s: np.ndarray, label: np.ndarray, labelled: np.ndarray, config: SplitConfig) -> Splits:
    """Split rows stratified by group, label and whether the label is known, all of shape (N,).

    Strata with too few rows are merged.
    """
    values, group = np.unique(s, return_inverse=True)
    n = len(values)
    for strata in (n * np.where(labelled, label, 2) + group, n * labelled + group, group):
        try:
            return split(len(s), config, strata)
        except FairAllError:
            continue  # a stratum is too small
    return split(len(s), config)


def split_by_column(words: np.ndarray, config: SplitConfig) -> Splits:
    """Split rows by a column of train, validation or test, shape (N,)."""
    train, validation, test = (np.flatnonzero(words == word) for word in ROLES[:3])
    return Splits(train, validation, test, _pool(train, config))


def _halves(
    rows: np.ndarray, share: float, random_state: int, strata: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Shuffle rows and cut off the first `share`; raises ValueError if a part is empty.

    The result of scikit-learn's `train_test_split`, used in the authors' code, which takes most of a second
    to import: it is not where there are no `strata`, of which both parts have their share.
    """
    if strata is not None:
        from sklearn.model_selection import train_test_split

        parts = train_test_split(rows, test_size=share, random_state=random_state, stratify=strata[rows])
        return tuple(parts)
    order = rows[np.random.RandomState(random_state).permutation(len(rows))]
    second, first = np.split(order, [math.ceil(share * len(rows))])
    if not len(first) or not len(second):
        raise ValueError(f"{len(rows)} rows leave a part empty")
    return first, second


def _pool(train: np.ndarray, config: SplitConfig) -> np.ndarray:
    n_pool = round(config.pool * len(train))
    if n_pool == 0:
        raise FairAllError(
            f"dataset.split.pool={config.pool:g} selects none of {len(train)} training rows for Phase I"
        )
    # Same result as pandas.DataFrame.sample with this random state, used in the authors' code.
    return train[np.random.RandomState(config.random_state).choice(len(train), size=n_pool, replace=False)]
