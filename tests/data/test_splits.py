"""How rows are cut."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from fairall.data.splits import SplitConfig, split


@pytest.mark.parametrize("random_state", [0, 32, 2**32 - 1])
@pytest.mark.parametrize("held_out", [0.01, 0.4, 0.99])
@pytest.mark.parametrize("n_rows", [200, 999, 5278])
def test_parts_are_those_of_sklearn(n_rows: int, held_out: float, random_state: int) -> None:
    parts = split(n_rows, SplitConfig(held_out=held_out, pool=0.6, random_state=random_state))
    train, rest = train_test_split(np.arange(n_rows), test_size=held_out, random_state=random_state)
    validation, test = train_test_split(rest, test_size=0.5, random_state=random_state)
    assert np.array_equal(parts.train, train)
    assert np.array_equal(parts.validation, validation)
    assert np.array_equal(parts.test, test)
    pool = pd.DataFrame(index=train).sample(frac=0.6, random_state=random_state).index
    assert np.array_equal(parts.pool, pool)
