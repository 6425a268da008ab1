"""How a table is cut into the people of each phase (appendix D.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import train_test_split

from fairall.config import SplitConfig


@dataclass(frozen=True)
class Splits:
    """Row numbers of a table, in the order in which its people are used.

    Attributes:
        train: everyone who may apply in Phase II; holds the pool too.
        validation: people to select on.
        test: people to report on.
        pool: the unlabelled people of Phase I; its first rows are those of the warm-up.
    """

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray
    pool: np.ndarray


def split(n_rows: int, config: SplitConfig) -> Splits:
    """Cuts rows 0..n_rows − 1 as the paper's experiments did: half of the held-out rows each way."""
    state = config.random_state
    train, held_out = train_test_split(np.arange(n_rows), test_size=config.held_out, random_state=state)
    validation, test = train_test_split(held_out, test_size=0.5, random_state=state)
    n_pool = round(config.pool * len(train))
    # The draw of pandas.DataFrame.sample with the same random state, which fixed the paper's pool.
    pool = train[np.random.RandomState(state).choice(len(train), size=n_pool, replace=False)]
    return Splits(train, validation, test, pool)
