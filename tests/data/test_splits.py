"""How rows are cut."""

import pytest

from fairall.data.splits import SplitConfig, split
from fairall.errors import FairAllError


@pytest.mark.parametrize("n_rows", [0, 1, 2])
def test_too_few_rows_are_told(n_rows: int) -> None:
    with pytest.raises(FairAllError, match=f"{n_rows} rows cannot be cut"):
        split(n_rows, SplitConfig(held_out=0.3, pool=0.6, random_state=0))
