import numpy as np
import pytest

from fairall.tables.overlap import effective_sample_size


@pytest.mark.parametrize(
    ("weights", "size"), [([3.0, 3.0, 0.0, 3.0], 3.0), ([1.0, 3.0], 16 / 10), ([0.0] * 3, 0.0)]
)
def test_effective_sample_size_by_hand(weights: list[float], size: float) -> None:
    assert effective_sample_size(np.array(weights)) == pytest.approx(size)
