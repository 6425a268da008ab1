"""How a table is cut into the people of each phase (appendix D.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fairall.config import SplitConfig
from fairall.errors import FairAllError


@dataclass(frozen=True)
class Splits:
    """Row numbers of a table, in the order in which its people are used.

    Attributes:
        train: everyone who may apply in Phase II; holds the pool too.
        validation: people to select on.
        test: people to report on.
        pool: the unlabelled people of Phase I; its first rows are those of the warm-up.
        labelled_share: how much of the labelled people `train` is cut from it holds. The pool has
            everybody who has no label, but of the others no more than this.
    """

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    pool: np.ndarray
    labelled_share: float = 1.0


def split(n_rows: int, config: SplitConfig) -> Splits:
    """Cuts rows 0..n_rows − 1 as the paper's experiments did: half of the held-out rows each way.

    Raises:
        FairAllError: where a part would be empty; so do the other ways to cut.
    """
    return _splits(np.arange(n_rows), None, config)


def split_alike(s: np.ndarray, label: np.ndarray, labelled: np.ndarray, config: SplitConfig) -> Splits:
    """Cuts the labelled rows at random, alike in groups and labels as far as their numbers allow.

    Args:
        s: sensitive attribute, shape (N,).
        label: ỹ in {0, 1}, shape (N,).
        labelled: whose label is known, shape (N,), bool; all others join the pool.
        config: shares and random state.
    """
    known = np.flatnonzero(labelled)
    for strata in (2 * label + (s == 1), (s == 1).astype(int)):
        try:
            splits = _splits(known, strata, config)
            break
        except FairAllError:
            continue  # too few of a stratum to have some in each part
    else:
        splits = _splits(known, None, config)
    return _with_unlabelled(splits, ~labelled, config)


def split_by_column(words: np.ndarray, labelled: np.ndarray, config: SplitConfig) -> Splits:
    """Cuts rows as a column says.

    Args:
        words: train, validation or test, shape (N,).
        labelled: whose label is known, shape (N,), bool; those without one join the pool if they are of
            train, and are left out otherwise.
        config: share of the pool and random state.
    """
    train, validation, test = (
        np.flatnonzero((words == word) & labelled) for word in ("train", "validation", "test")
    )
    unlabelled = (words == "train") & ~labelled
    # The file says who is unlabelled in training: nobody of the labelled was taken away from them.
    return _with_unlabelled(Splits(train, validation, test, _pool(train, config)), unlabelled, config)


def _splits(rows: np.ndarray, strata: np.ndarray | None, config: SplitConfig) -> Splits:
    def halves(rows: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
        if strata is None:
            return _halves(rows, share, config.random_state)
        return _stratified_halves(rows, share, config.random_state, strata[rows])

    try:
        train, held_out = halves(rows, config.held_out)
        validation, test = halves(held_out, 0.5)
    except ValueError as error:
        raise FairAllError(
            f"dataset.split.held_out={config.held_out:g}: {len(rows)} rows cannot be cut so that training, "
            "validation and test set each have some; choose a share nearer to a half"
        ) from error
    return Splits(train, validation, test, _pool(train, config), labelled_share=len(train) / len(rows))


def _halves(rows: np.ndarray, share: float, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in random order, the last ones and the first `share` of them; ValueError where a part is empty.

    The draw of sklearn's `train_test_split` with the same random state, which made the paper's parts, without
    the second of CPU that importing it takes.
    """
    order = rows[np.random.RandomState(random_state).permutation(len(rows))]
    n_second = math.ceil(share * len(rows))
    if n_second in (0, len(rows)):
        raise ValueError(f"{len(rows)} rows leave a part empty")
    return order[n_second:], order[:n_second]


def _stratified_halves(
    rows: np.ndarray, share: float, random_state: int, strata: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same, with strata (N,) in their proportion in both parts."""
    from sklearn.model_selection import train_test_split

    first, second = train_test_split(rows, test_size=share, random_state=random_state, stratify=strata)
    return first, second


def _pool(train: np.ndarray, config: SplitConfig) -> np.ndarray:
    n_pool = round(config.pool * len(train))
    if n_pool == 0:
        raise FairAllError(
            f"dataset.split.pool={config.pool:g} leaves nobody of {len(train)} training rows for Phase I"
        )
    # The draw of pandas.DataFrame.sample with the same random state, which fixed the paper's pool.
    return train[np.random.RandomState(config.random_state).choice(len(train), size=n_pool, replace=False)]


def _with_unlabelled(splits: Splits, unlabelled: np.ndarray, config: SplitConfig) -> Splits:
    """Adds everybody who has no label to the pool.

    The order is random, with labelled and unlabelled people in their natural proportion from its start, for
    the warm-up's sake, until the labelled ones, of whom the pool has a part only, are used up.
    """
    random = np.random.RandomState(config.random_state)
    added = np.flatnonzero(unlabelled)
    last = config.pool * splits.labelled_share
    order = np.concatenate([last * random.random_sample(len(splits.pool)), random.random_sample(len(added))])
    everyone = np.concatenate([splits.pool, added])
    return replace(splits, pool=everyone[np.argsort(order, kind="stable")])
